"""Notifications that this hub publishes, as wmo-im/wis2-notification-message wants them (clause 7); pure."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from downburst.foundation.errors import BadInput
from downburst.wis2.integrity import Integrity
from downburst.wis2.notifications import CORE, LONGEST_BYTES, LONGEST_INLINE, Kind, read_notification


@dataclass(frozen=True, slots=True)
class Announced:
    """A product that is announced."""

    id: str
    """A UUID, which a notification keeps over all attempts."""
    kind: Kind
    data_id: str
    metadata_id: str
    published_at: datetime
    """Of the first publisher; for a product that came by WIS2 it is the one stated there."""
    url: str
    length_bytes: int
    integrity: Integrity
    media_type: str = "application/octet-stream"
    data_at: datetime | None = None
    """The time of the data; None: not known."""
    geometry: Mapping[str, Any] | None = None
    """As a source stated it; None: not known."""
    gts: tuple[str, str] | None = None
    """TTAAii and CCCC of a bulletin."""
    producer: str | None = None
    """The centre that made the data, if it is another one."""
    cache: bool = True


def notification_of(announced: Announced, content: bytes | None = None) -> bytes:
    """The message; small content is within it too, and on the server all the same.

    A deletion has no digest and no content. A message that the official tests would refuse is not made.
    """
    message = _message(announced)
    if content is not None and announced.kind is not Kind.DELETION:
        inline = _inline(content)
        if inline is not None:
            message["properties"]["content"] = inline
            if len(_packed(message)) > LONGEST_BYTES:
                del message["properties"]["content"]
    payload = _packed(message)
    found = read_notification(payload)
    if found.faults:
        raise BadInput(
            f"the notification of {announced.data_id} departs from the standard: {'; '.join(found.faults)}"
        )
    return payload


def _message(announced: Announced) -> dict[str, Any]:
    return {
        "id": announced.id,
        "conformsTo": [CORE],
        "type": "Feature",
        "geometry": announced.geometry,
        "properties": _properties(announced),
        "links": [
            {
                "href": announced.url,
                "rel": announced.kind.value,
                "type": announced.media_type,
                "length": announced.length_bytes,
            }
        ],
    }


def _properties(announced: Announced) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "data_id": announced.data_id,
        "metadata_id": announced.metadata_id,
        "pubtime": _instant(announced.published_at),
        "datetime": None if announced.data_at is None else _instant(announced.data_at),
    }
    if announced.kind is not Kind.DELETION:
        value = {"method": announced.integrity.method, "value": announced.integrity.base64}
        properties["integrity"] = value
    if announced.producer is not None:
        properties["producer"] = announced.producer
    if not announced.cache:
        properties["cache"] = False
    if announced.gts is not None:
        ttaaii, cccc = announced.gts
        if not _TTAAII.fullmatch(ttaaii) or not _CCCC.fullmatch(cccc):
            raise BadInput(
                f"{ttaaii[:20]} {cccc[:20]} is no heading of the GTS: four letters and two digits, four letters"
            )
        properties["gts"] = {"ttaaii": ttaaii, "cccc": cccc}
    return properties


def _inline(content: bytes) -> dict[str, Any] | None:
    """The content as text where it is text, else in base64; None: it is too long for either."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and "\0" not in text and len(text) <= LONGEST_INLINE:
        return {"encoding": "utf-8", "value": text, "size": len(content)}
    packed = base64.b64encode(content).decode()
    if len(packed) <= LONGEST_INLINE:
        return {"encoding": "base64", "value": packed, "size": len(content)}
    return None


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _packed(message: object) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


_TTAAII = re.compile(r"[A-Z]{4}[0-9]{2}")
_CCCC = re.compile(r"[A-Z]{4}")
