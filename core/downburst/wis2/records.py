"""Records of discovery of the datasets that this hub publishes (WMO Core Metadata Profile 2, wmo-im/wcmp2); pure."""

import json
from datetime import UTC, datetime
from typing import Any

from downburst.domain.bridges.datasets import Dataset
from downburst.domain.bridges.publishers import Wis2Publisher


def record_of(publisher: Wis2Publisher, dataset: Dataset, updated_at: datetime) -> bytes:
    """The record as a GeoJSON document."""
    policy, discipline = publisher.subtopic.split("/")[:2] if "/" in publisher.subtopic else (publisher.subtopic, "")
    properties: dict[str, Any] = {
        "type": "dataset",
        "title": dataset.title,
        "description": dataset.description,
        "keywords": list(dataset.keywords),
        "themes": [{"concepts": [{"id": discipline}], "scheme": DISCIPLINES}],
        "contacts": [_contact(dataset)],
        "created": _instant(dataset.begin),
        "updated": _instant(updated_at),
        "wmo:dataPolicy": policy,
    }
    document = {
        "id": publisher.metadata_id,
        "conformsTo": [CORE],
        "type": "Feature",
        "time": {"interval": [_instant(dataset.begin), ".."]},
        "geometry": _geometry(dataset),
        "properties": properties,
        "links": _links(publisher, dataset),
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _contact(dataset: Dataset) -> dict[str, Any]:
    return {
        "organization": dataset.organization,
        "emails": [{"value": dataset.email}],
        "addresses": [{"country": dataset.country}],
        "links": [{"href": dataset.website, "rel": "about", "type": "text/html"}],
        "roles": ["host", "producer"],
    }


def _geometry(dataset: Dataset) -> dict[str, Any]:
    west, south, east, north = dataset.bounds or (-180.0, -90.0, 180.0, 90.0)
    ring = [[west, south], [west, north], [east, north], [east, south], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def _links(publisher: Wis2Publisher, dataset: Dataset) -> list[dict[str, Any]]:
    channel = "cache" if publisher.subtopic.startswith("core") else "origin"
    notifications = {
        "rel": "items",
        "href": publisher.broker.url,
        "type": "application/geo+json",
        "title": "Notifications",
        "channel": f"{channel}/a/wis2/{publisher.centre}/data/{publisher.subtopic}",
    }
    links = [notifications]
    if dataset.license_url is not None:
        links.append({"rel": "license", "href": dataset.license_url, "type": "text/html", "title": "License"})
    return links


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


CORE = "http://wis.wmo.int/spec/wcmp/2/conf/core"
DISCIPLINES = "https://codes.wmo.int/wis/topic-hierarchy/earth-system-discipline"
