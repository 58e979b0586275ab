"""WIS2 notification messages (WNM), as wmo-im/wis2-notification-message describes them in clause 7; pure.

A notification comes from a stranger: each value is bounded before use. The reader takes what the standard's readers
take, and known faults of publishers: digits of a second to nanoseconds, a digest in hexadecimal, coordinates in a
string, a link without a length.
"""

import base64
import binascii
import gzip
import io
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from downburst.foundation.errors import BadInput
from downburst.foundation.names import check_product_id
from downburst.wis2.integrity import Integrity, read_integrity


class Kind(StrEnum):
    """The relation of the one link that counts."""

    NEW = "canonical"
    UPDATE = "update"
    DELETION = "deletion"


@dataclass(frozen=True, slots=True)
class Link:
    """The place of the bytes."""

    url: str
    length_bytes: int | None = None
    media_type: str | None = None
    needs_credentials: bool = False


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification, checked."""

    id: str
    kind: Kind
    data_id: str
    published_at: datetime
    """`pubtime`: set by the first publisher, never changed behind it."""
    link: Link
    metadata_id: str | None = None
    integrity: Integrity | None = None
    inline: bytes | None = None
    """The bytes, where the message has them and they have the stated size and digest."""
    inline_refused: str = ""
    """The reason for which the message's own bytes are not used."""
    cache: bool = True
    """False: Global Caches leave it to its origin."""
    faults: tuple[str, ...] = ()
    """Departures from the standard that were read all the same."""

    @property
    def identity(self) -> tuple[str, str]:
        """The key of the product: an equal digest under a new publication time is a copy."""
        if self.integrity is not None:
            return self.data_id, self.integrity.digest.hex()
        return self.data_id, self.published_at.isoformat()


def read_notification(payload: bytes) -> Notification:
    """The notification in a message of a broker; one sentence for the first reason against it."""
    faults: list[str] = []
    document = _document(payload)
    _check_type(document, faults)
    properties = _object(document.get("properties"), "properties")
    _check_geometry(document, faults)
    _check_time(properties, faults)
    kind, link = _link(document.get("links"), faults)
    integrity = _integrity(properties.get("integrity"))
    inline, refused = _inline(properties.get("content"), integrity) if kind is not Kind.DELETION else (None, "")
    return Notification(
        id=_id(document.get("id")),
        kind=kind,
        data_id=check_product_id(_text(properties.get("data_id"), "data_id", 255)),
        published_at=_instant(properties.get("pubtime"), "pubtime", faults),
        link=link,
        metadata_id=_optional(properties.get("metadata_id"), "metadata_id", 255),
        integrity=integrity,
        inline=inline,
        inline_refused=refused,
        cache=_cache(properties.get("cache", True)),
        faults=tuple(faults),
    )


def _document(payload: bytes) -> Mapping[str, Any]:
    if len(payload) > LONGEST_BYTES:
        raise BadInput(f"the message has {len(payload)} bytes; a notification has at most {LONGEST_BYTES}")
    try:
        text = payload.decode()
        document = json.loads(text, parse_constant=_refuse_constant)
        if _ESCAPED_HALF.search(text):
            # A lone half of a pair is legal JSON and no text: nobody could write it again.
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise BadInput("the message is no JSON in UTF-8") from None
    return _object(document, "the message")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _check_type(document: Mapping[str, Any], faults: list[str]) -> None:
    if document.get("type") != "Feature":
        raise BadInput('the message has no `"type": "Feature"`')
    conforms = document.get("conformsTo")
    if isinstance(conforms, list) and CORE in conforms:
        return
    if document.get("version") != "v04":
        raise BadInput(f"the message does not conform to {CORE}")
    faults.append("it states `version` v04 in place of `conformsTo`")


def _check_geometry(document: Mapping[str, Any], faults: list[str]) -> None:
    """A place may be absent in meaning (null), not in form."""
    if "geometry" not in document:
        faults.append("it has no `geometry`, not even null")
        return
    geometry = document["geometry"]
    if geometry is None:
        return
    coordinates = _object(geometry, "geometry").get("coordinates")
    if not isinstance(coordinates, list):
        faults.append("its `coordinates` are no list")


def _check_time(properties: Mapping[str, Any], faults: list[str]) -> None:
    """The time of the data is `datetime`, which may be null, or a start and an end."""
    if "datetime" in properties:
        times = [properties["datetime"]]
    elif "start_datetime" in properties and "end_datetime" in properties:
        times = [properties["start_datetime"], properties["end_datetime"]]
    else:
        faults.append("it has no `datetime`, nor `start_datetime` and `end_datetime`")
        return
    for time in times:
        if time is not None:
            _instant(time, "datetime", faults)


def _link(links: object, faults: list[str]) -> tuple[Kind, Link]:
    if not isinstance(links, list) or not 0 < len(links) <= MOST_LINKS:
        raise BadInput(f"the message has no list `links` of 1 to {MOST_LINKS} links")
    kinds = [kind.value for kind in Kind]
    found = [one for one in links if isinstance(one, Mapping) and one.get("rel") in kinds]
    if len(found) != 1:
        raise BadInput(
            f"the message has {len(found)} links of the relations {', '.join(sorted(kinds))}; it needs one"
        )
    return Kind(found[0]["rel"]), _read_link(found[0], faults)


def _read_link(link: Mapping[str, Any], faults: list[str]) -> Link:
    url = _text(link.get("href"), "href", LONGEST_URL)
    if not url.isascii() or not _URL.fullmatch(url):
        raise BadInput(f"the link {url[:80]!r} is no address of HTTP or HTTPS, from which alone is fetched here")
    length = link.get("length")
    if length is None:
        faults.append("its link has no `length`")
    elif not isinstance(length, int) or isinstance(length, bool) or not 0 <= length <= MOST_BYTES:
        raise BadInput(
            f"the link has the length {str(length)[:20]!r}, which is no number of bytes up to {MOST_BYTES}"
        )
    media_type = link.get("type")
    kept = media_type if isinstance(media_type, str) and len(media_type) <= LONGEST_TYPE else None
    return Link(url, length, kept, isinstance(link.get("security"), Mapping))


def _integrity(stated: object) -> Integrity | None:
    if stated is None:
        return None
    found = _object(stated, "integrity")
    return read_integrity(found.get("method"), found.get("value"))


def _inline(content: object, integrity: Integrity | None) -> tuple[bytes | None, str]:
    """The bytes within the message, or the reason against them: the link is the other way to them."""
    if content is None:
        return None, ""
    try:
        found = _object(content, "content")
        inline = _decoded(found.get("encoding"), _text(found.get("value"), "content.value", LONGEST_INLINE, least=0))
    except BadInput as error:
        return None, str(error)
    size = found.get("size")
    if size is not None and size != len(inline):
        return None, f"content has {len(inline)} bytes, and states a size of {str(size)[:20]}"
    if integrity is not None and not integrity.is_of(inline):
        return None, f"content does not have the stated {integrity.method} digest"
    return inline, ""


def _decoded(encoding: object, value: str) -> bytes:
    if encoding == "utf-8":
        return value.encode()
    if encoding not in ("base64", "gzip"):
        raise BadInput(f"content has the encoding {str(encoding)[:20]!r}; it is utf-8, base64 or gzip")
    try:
        decoded = base64.b64decode(value, validate=True)
        return decoded if encoding == "base64" else _unpacked(decoded)
    except (binascii.Error, OSError, EOFError, ValueError):
        raise BadInput(f"content is no {encoding}") from None


def _unpacked(packed: bytes) -> bytes:
    """Bytes of a gzip stream; a stream that grows beyond all measure is refused before it has."""
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
        unpacked = stream.read(MOST_UNPACKED + 1)
    if len(unpacked) > MOST_UNPACKED:
        raise ValueError
    return unpacked


def _id(value: object) -> str:
    text = _text(value, "id", 64)
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise BadInput(f"the id {text[:40]!r} is no UUID") from None


def _instant(value: object, name: str, faults: list[str]) -> datetime:
    """An instant of RFC 3339; fractions behind the microsecond are dropped."""
    text = _text(value, name, 40)
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise BadInput(f"{name} {text!r} is no time of RFC 3339 in UTC")
    if not found["zone"]:
        faults.append(f"its {name} has no `Z`")
    try:
        instant = datetime.fromisoformat(f"{found['second']}{(found['fraction'] or '')[:7]}")
    except ValueError:
        raise BadInput(f"{name} {text!r} is outside the calendar") from None
    return instant.replace(tzinfo=UTC)


def _cache(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"cache is {str(value)[:20]!r}, and not true or false")
    return value


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput(f"{name} is no JSON object")
    return value


def _text(value: object, name: str, most: int, *, least: int = 1) -> str:
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise BadInput(f"{name} is no text of {least} to {most} characters")
    return value


def _optional(value: object, name: str, most: int) -> str | None:
    return None if value is None else _text(value, name, most)


def sentence_of(faults: Sequence[str]) -> str:
    """The departures of a notification from the standard, for people; empty without any."""
    return "" if not faults else f"The notification departs from the standard: {'; '.join(faults)}."


CORE = "http://wis.wmo.int/spec/wnm/1/conf/core"
LONGEST_BYTES = 8_192
LONGEST_INLINE = 4_096
MOST_UNPACKED = 1 << 20
LONGEST_URL = 2_000
LONGEST_TYPE = 100
MOST_LINKS = 50
MOST_BYTES = 1 << 40
_URL = re.compile(r"https?://[^\s/?#]+([/?#]\S*)?", re.IGNORECASE)
_INSTANT = re.compile(
    r"(?P<second>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<fraction>\.\d{1,9})?(?P<zone>Z|\+00:00|-00:00)?"
)
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
