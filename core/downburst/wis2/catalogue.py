"""Records of a Global Discovery Catalogue, and the subscriptions that they name; pure.

The catalogue is one of OGC API Records (guide to WIS2, 2.7.5; wmo-im/wis2-gdc) over records of WMO's Core Metadata
Profile 2. A link whose `href` is a broker and that has a `channel` is a subscription: catalogues put the Global
Brokers in place of the centre's own one, and the channel `cache` in place of `origin` for core data.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from downburst.domain.bridges.sources import EVERYONE, PORTS, Broker
from downburst.foundation.errors import BadInput
from downburst.wis2.topics import Channel, Policy, check_filter


@dataclass(frozen=True, slots=True)
class CatalogueDataset:
    """A dataset as its record describes it."""

    metadata_id: str
    title: str
    policy: str
    """As the record states it: `core` or `recommended`."""
    topics: tuple[str, ...]
    """Those of its data."""
    brokers: tuple[Broker, ...]

    @property
    def centre(self) -> str:
        """The centre-id, of `urn:wmo:md:CENTRE:…`; empty: the id has another form."""
        levels = self.metadata_id.split(":")
        return levels[3] if len(levels) > 4 and levels[:3] == ["urn", "wmo", "md"] else ""

    @property
    def is_recommended(self) -> bool:
        """True if its data come from their origin, which may ask for a login."""
        return self.policy == Policy.RECOMMENDED


@dataclass(frozen=True, slots=True)
class Records:
    """An answer to a search."""

    datasets: tuple[CatalogueDataset, ...]
    records: int
    """Those that can't be read count too."""
    matched: int | None
    """The number of all records that fit; None: the catalogue does not state it."""


def records_url(catalogue: str, metadata_id: str | None = None) -> str:
    """The address of the records, or of one; that of the catalogue, or of its collection, may be given."""
    base = catalogue.rstrip("/").removesuffix("/items")
    items = f"{base}/items" if base.endswith(COLLECTION) else f"{base}{COLLECTION}/items"
    return items if metadata_id is None else f"{items}/{quote(metadata_id, safe=':')}"


def read_records(document: bytes) -> Records:
    """The datasets of an answer; refuses one that has no list of records."""
    answer = _object(document)
    features = answer.get("features")
    if not isinstance(features, list):
        raise BadInput("the catalogue answers with no list of records")
    found = (_dataset(one) for one in features)
    matched = answer.get("numberMatched")
    return Records(
        tuple(one for one in found if one is not None),
        len(features),
        matched if isinstance(matched, int) and not isinstance(matched, bool) else None,
    )


def read_record(document: bytes) -> CatalogueDataset:
    """The dataset of one record; refuses another document."""
    found = _dataset(_object(document))
    if found is None:
        raise BadInput("the catalogue answers with something other than a record of a dataset")
    return found


def _object(document: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(document)
    except (ValueError, RecursionError):
        raise BadInput("the catalogue answers with something other than JSON") from None
    if not isinstance(answer, Mapping):
        raise BadInput("the catalogue answers with something other than a JSON object")
    return answer


def _dataset(record: object) -> CatalogueDataset | None:
    """None: the record has no id, or is none."""
    if not isinstance(record, Mapping) or not isinstance(record.get("id"), str):
        return None
    stated, links = record.get("properties"), record.get("links")
    properties: Mapping[str, Any] = stated if isinstance(stated, Mapping) else {}
    policy = _text(properties.get("wmo:dataPolicy"))
    found = list(_subscriptions(links if isinstance(links, list) else [], is_core=policy != Policy.RECOMMENDED))
    return CatalogueDataset(
        _text(record["id"]),
        _text(properties.get("title")),
        policy,
        tuple(dict.fromkeys(topic for topic, _ in found)),
        tuple({broker.url: broker for _, broker in found}.values()),
    )


def _subscriptions(links: Iterable[object], *, is_core: bool) -> Iterable[tuple[str, Broker]]:
    for link in links:
        if isinstance(link, Mapping):
            try:
                topic = check_filter(_topic(str(link.get("channel")), is_core=is_core))
                broker = _broker(str(link.get("href")))
            except (BadInput, ValueError):
                continue
            if topic.split("/")[4:5] == ["data"]:
                yield topic, broker


def _topic(channel: str, *, is_core: bool) -> str:
    """Global Caches have core data, and no others (guide, 1.2.3)."""
    wrong, right = (Channel.ORIGIN, Channel.CACHE) if is_core else (Channel.CACHE, Channel.ORIGIN)
    return f"{right}{channel.removeprefix(wrong)}" if channel.startswith(f"{wrong}/") else channel


def _broker(href: str) -> Broker:
    """The broker of a link, in which user and password may stand."""
    parts = urlsplit(href)
    if parts.scheme not in PORTS:
        raise BadInput(f"{href[:80]!r} is no broker")
    _, _, place = parts.netloc.rpartition("@")
    user, password = unquote(parts.username or EVERYONE), unquote(parts.password or EVERYONE)
    return Broker(parts._replace(netloc=place).geturl(), user, password)


def _text(value: object) -> str:
    """A text of a stranger for a line of a table."""
    text = value[:LONGEST_TEXT] if isinstance(value, str) else ""
    return "".join(one for one in text if one.isprintable())


COLLECTION = "/collections/wis2-discovery-metadata"
LONGEST_TEXT = 300
