"""Records of catalogues: datasets with their brokers and topics, whatever else a record has."""

import json
from typing import Any

import pytest

from downburst.domain.bridges import Broker
from downburst.foundation.errors import BadInput
from downburst.wis2.catalogue import read_record, read_records, records_url

ID = "urn:wmo:md:de-dwd:synop"
CHANNEL = "origin/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop"


def record(*links: object, policy: str = "core", metadata_id: str = ID) -> dict[str, Any]:
    """A record of WCMP2."""
    properties = {"title": "Synop\nof Germany", "wmo:dataPolicy": policy}
    return {"type": "Feature", "id": metadata_id, "properties": properties, "links": list(links)}


def link(href: str, channel: str = CHANNEL) -> dict[str, Any]:
    """A link to a broker."""
    return {"rel": "items", "type": "application/geo+json", "href": href, "channel": channel}


GLOBAL = link("mqtts://everyone:everyone@globalbroker.example:8883", CHANNEL.replace("origin", "cache"))


def read(document: object) -> Any:
    return read_record(json.dumps(document).encode())


def test_a_record_names_brokers_and_topics() -> None:
    own = link("wss://me:p%40ss@broker.example/mqtt")
    others = (None, {"href": "https://x"}, link("ftp://x"), link("mqtts://x:0"), link("mqtt://x", "a b"))
    metadata = link("mqtts://x.example", "cache/a/wis2/de-dwd/metadata")
    found = read(record(GLOBAL, GLOBAL, own, metadata, *others))
    assert (found.metadata_id, found.title, found.centre, found.policy) == (ID, "Synopof Germany", "de-dwd", "core")
    assert found.topics == (CHANNEL.replace("origin", "cache"),), "core data come from caches"
    assert found.brokers == (
        Broker("mqtts://globalbroker.example:8883"),
        Broker("wss://broker.example/mqtt", "me", "p@ss"),
    )
    assert not found.is_recommended


def test_recommended_data_come_from_their_origin() -> None:
    channel = CHANNEL.replace("core", "recommended").replace("origin", "cache")
    found = read(record(link("mqtts://globalbroker.example", channel), policy="recommended"))
    assert found.topics == (CHANNEL.replace("core", "recommended"),)
    assert found.is_recommended


def test_records_that_are_none_are_passed_over() -> None:
    answer = {"features": [record(GLOBAL), None, {"id": 7}, {"id": "x"}], "numberMatched": 40}
    found = read_records(json.dumps(answer).encode())
    assert [(one.metadata_id, one.centre, one.topics) for one in found.datasets][1] == ("x", "", ())
    assert (len(found.datasets), found.records, found.matched) == (2, 4, 40)


@pytest.mark.parametrize("document", [b"<html>", b"[]", b'{"features": 1}', b"{}"])
def test_other_answers_are_refused(document: bytes) -> None:
    for reader in (read_record, read_records):
        with pytest.raises(BadInput, match="the catalogue answers with"):
            reader(document)


def test_the_address_of_a_record_is_below_the_collection() -> None:
    items = "https://gdc.example/collections/wis2-discovery-metadata/items"
    assert records_url("https://gdc.example/") == records_url(items) == items
    assert records_url(items, "urn:a/b c") == f"{items}/urn:a%2Fb%20c"
