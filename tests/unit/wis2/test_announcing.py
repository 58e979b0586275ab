"""The notification of a product, or the reason for which there is none."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from contract.test_ledger_publishers import PUBLISHER
from downburst.domain.bridges.exporting import ExportedProduct
from downburst.domain.bridges.publishers import Outgoing, Step, Wis2Publisher
from downburst.wis2.announcing import Announcing, Ready, outgoing_of
from downburst.wis2.notifications import Kind, read_notification
from downburst.wis2.properties import properties_of
from downburst.wis2.topics import read_topic
from unit.bridges.test_intake import TOPIC, message

AT = datetime(2026, 11, 29, 17, 0, tzinfo=UTC)
ID = "31e9d66a-cd83-4174-9429-b932f1abe1be"
BULLETIN = b"\x01\r\r\n123\r\r\nSMVX52 TJSJ 291200\r\r\nAAXX 29121"


def ready(
    content: bytes = BULLETIN, product_id: str = "SMVX52 TJSJ 291200", properties: bytes | None = None
) -> Ready:
    product = ExportedProduct("IDS|DDPLUS", "7", 42, product_id, len(content), AT, properties)
    return Ready(product, hashlib.sha512(content).digest(), content[:4_096])


def outgoing(made: Ready, publisher: Wis2Publisher = PUBLISHER, latest: Outgoing | None = None) -> Outgoing:
    return outgoing_of(publisher, made, Announcing(ID, AT, latest))


def document(one: Outgoing) -> dict[str, Any]:
    assert one.step is Step.WAITING, one.reason
    assert read_notification(one.payload).faults == ()
    found: dict[str, Any] = json.loads(one.payload)
    return found


def by_wis2(topic: str = TOPIC) -> bytes:
    return properties_of(read_topic(topic), json.dumps(message(1, of=1)).encode())


def test_a_bulletin_is_announced_with_its_heading_its_digest_and_its_bytes() -> None:
    one = outgoing(ready())
    found = document(one)
    assert one.topic == "origin/a/wis2/us-unidata/data/core/weather/surface-based-observations/synop"
    properties, (link,) = found["properties"], found["links"]
    assert properties["data_id"] == one.data_id == "us-unidata/synop/SMVX52+TJSJ+291200"
    assert properties["gts"] == {"ttaaii": "SMVX52", "cccc": "TJSJ"}
    assert properties["pubtime"] == "2026-11-29T17:00:00.000Z"
    assert read_notification(one.payload).inline == BULLETIN
    assert link == {
        "rel": "canonical",
        "href": "https://hub.example/wis2/synop/7/42-SMVX52%20TJSJ%20291200",
        "type": "application/octet-stream",
        "length": len(BULLETIN),
    }


def test_a_product_that_is_too_long_is_at_its_link_alone() -> None:
    found = document(outgoing(ready(b"x" * 9_000)))
    assert "content" not in found["properties"]
    assert "gts" not in found["properties"]


def test_other_bytes_of_a_known_data_id_are_an_update_and_the_same_ones_are_nothing() -> None:
    first = outgoing(ready())
    same = outgoing(ready(), latest=first)
    assert (same.step, same.reason) == (Step.REFUSED, "the same bytes were announced before under this data id")
    changed = outgoing(ready(b"other"), latest=first)
    assert document(changed)["links"][0]["rel"] == changed.kind == "update"
    anew = outgoing(ready(), latest=replace(first, kind=Kind.DELETION.value))
    assert anew.kind == "canonical"


def test_a_gateway_makes_topics_of_headings() -> None:
    gateway = replace(PUBLISHER, by_heading=True)
    assert outgoing(ready(), gateway).topic == "origin/a/wis2/us-unidata/data/core/S/M/V/X/52/TJSJ"
    other = outgoing(ready(b"GRIB"), gateway)
    assert (other.step, "heading" in other.reason) == (Step.REFUSED, True)


def test_what_came_by_wis2_goes_out_only_where_a_publisher_wants_it() -> None:
    made = ready(properties=by_wis2())
    refused = outgoing(made)
    assert (refused.step, refused.payload) == (Step.REFUSED, b"")
    assert refused.reason.startswith("it came by WIS2 from de-dwd")
    one = outgoing(made, replace(PUBLISHER, republishes=True))
    properties = document(one)["properties"]
    assert (properties["data_id"], properties["producer"]) == ("de-dwd/synop/1", "de-dwd")
    assert properties["pubtime"].startswith("2026-11-23T04:50:18"), "it was published then"
    assert document(one)["id"] == ID, "each publisher has its own"


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        (TOPIC.replace("de-dwd", "us-unidata"), "it is of us-unidata already: it would go round"),
        (TOPIC.replace("core", "recommended"), "it is recommended data of de-dwd, and the topic is one of core data"),
    ],
)
def test_own_and_recommended_data_never_become_core_data(topic: str, reason: str) -> None:
    one = outgoing(ready(properties=by_wis2(topic)), replace(PUBLISHER, republishes=True))
    assert (one.step, one.reason) == (Step.REFUSED, reason)


def test_names_of_any_product_are_legal_in_addresses_and_data_ids() -> None:
    one = outgoing(ready(product_id="a/b ü+%/x y"))
    assert one.data_id == "us-unidata/synop/a/b+%C3%BC%2B%25/x+y"
    assert document(one)["links"][0]["href"].endswith("/7/42-x%20y")
    long = outgoing(ready(product_id="ü" * 120))
    assert long.step is Step.REFUSED
