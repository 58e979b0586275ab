"""What a product keeps of the notification by which it came: a JSON document that no hop reads or changes.

    {"source": "wis2", "topic": "cache/a/wis2/…", "notification": {…}}

The notification is as it came, except for bytes within it: these are the product. The document has at most 8 KiB. A
notification that leaves no room for its topic loses members that no bridge needs, and says so.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from downburst.foundation.errors import BadInput
from downburst.wis2.notifications import Notification, read_notification
from downburst.wis2.topics import Topic, read_topic


@dataclass(frozen=True, slots=True)
class Stated:
    """The statements of a source about a product, read back."""

    topic: Topic
    notification: Notification
    document: Mapping[str, Any]
    """The notification as it came, without bytes."""
    shortened: bool
    """Members that no bridge needs are left out."""


def properties_of(topic: Topic, payload: bytes) -> bytes:
    """The document of a product from a message that is a notification."""
    if not _MAY_HOLD_BYTES.search(payload):
        # As it came: nothing has to be read for this, and most notifications are such.
        whole = b'{"source":"%b","topic":%b,"notification":%b}' % (SOURCE.encode(), _packed(topic.text), payload)
        if len(whole) <= MOST_BYTES:
            return whole
    notification = dict(json.loads(payload))
    notification["properties"] = {
        name: value for name, value in notification["properties"].items() if name != "content"
    }
    document = {"source": SOURCE, "topic": topic.text, "notification": notification}
    whole = _packed(document)
    if len(whole) <= MOST_BYTES:
        return whole
    shortened = document | {"notification": _shortened(notification), "shortened": True}
    packed = _packed(shortened)
    if len(packed) > MOST_BYTES:
        raise BadInput(f"the notification has members of more than {MOST_BYTES} bytes that a product has to keep")
    return packed


def stated_in(properties: bytes) -> Stated | None:
    """The statements in a product's properties; None: another kind of source made them, or they are damaged."""
    try:
        document = json.loads(properties)
        if not isinstance(document, Mapping) or document.get("source") != SOURCE:
            return None
        notification, topic = document.get("notification"), document.get("topic")
        if not isinstance(topic, str) or not isinstance(notification, Mapping):
            return None
        read = read_notification(_packed(notification))
        return Stated(read_topic(topic), read, notification, document.get("shortened") is True)
    except (ValueError, RecursionError, BadInput):
        return None


def _shortened(notification: Mapping[str, Any]) -> dict[str, Any]:
    """The members that the standard names."""
    properties = {name: value for name, value in notification["properties"].items() if name in KEPT_PROPERTIES}
    links = [link for link in notification["links"] if link.get("rel") in COUNTS]
    kept = {name: notification[name] for name in ("id", "type", "conformsTo", "version") if name in notification}
    return kept | {"geometry": None, "properties": properties, "links": links}


def _packed(document: object) -> bytes:
    return _PACKED.encode(document).encode()


SOURCE = "wis2"
MOST_BYTES = 8_192
"""The limit of the product's properties (crate model, `PROPERTIES_BYTES_MAX`)."""
KEPT_PROPERTIES = frozenset({
    "data_id", "metadata_id", "pubtime", "datetime", "start_datetime", "end_datetime", "integrity", "cache",
    "producer", "global-cache", "gts",
})  # fmt: skip
COUNTS = ("canonical", "update", "deletion")
_MAY_HOLD_BYTES = re.compile(rb"content|\\u")
"""The name of the member with bytes, which may be written with escapes."""
_PACKED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
