"""Notifications of WIS2 as a Global Cache sends them."""

import base64
import hashlib
from typing import Any

TOPIC = "cache/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop"


def announcement(number: int, url: str, content: bytes, **properties: Any) -> dict[str, Any]:
    """The notification of a file."""
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    return {
        "id": f"31e9d66a-cd83-4174-9429-{number:012}",
        "type": "Feature",
        "conformsTo": ["http://wis.wmo.int/spec/wnm/1/conf/core"],
        "geometry": None,
        "properties": {
            "data_id": f"de-dwd/synop/{number}",
            "metadata_id": "urn:wmo:md:de-dwd:synop",
            "pubtime": "2026-11-23T04:00:00Z",
            "datetime": None,
            "integrity": {"method": "sha512", "value": digest},
        }
        | properties,
        "links": [{"rel": "canonical", "href": url, "type": "application/octet-stream", "length": len(content)}],
    }
