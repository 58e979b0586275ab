"""A trace leads back through a bridge to the notification, and on to announcements of publishers."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from contract.test_ledger_publishers import PUBLISHER, outgoing
from contract.test_ledger_wis2 import LAST, NOTICE, SOURCE
from downburst.domain.bridges import Ended, State
from downburst.domain.bridges.publishers import Step
from downburst.wis2.properties import properties_of
from downburst.wis2.topics import read_topic
from downburst_app.cli.feeds.bridge_lines import bridge_lines
from factories import EPOCH
from kit.wis2.announced import announcement
from unit.api.conftest import Asked

DATA_ID = "de-dwd/synop/1"
TOPIC = "cache/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop"
PUBLISHED = datetime(2026, 11, 23, 4, tzinfo=UTC)
MESSAGE = announcement(1, "https://files.example/1", b"bytes")


async def traced(hub: Asked) -> dict[str, Any]:
    """The only product, as it came."""
    found = await hub.ask("GET", "/v1/products/trace", params={"product": DATA_ID})
    (product,) = found["products"]
    return dict(product)


async def brought(hub: Asked, *, sequence: int = 1, notification_id: str = MESSAGE["id"]) -> None:
    """Has the product in its feed, and a notice in the ledger."""
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "WIS2"})
    await hub.ask("PUT", f"/v1/feeds/WIS2/products/{DATA_ID}", 201, content=b"bytes")
    properties = properties_of(read_topic(TOPIC), json.dumps(MESSAGE).encode())
    hub.node.fake.properties[DATA_ID] = properties.decode()
    heard_at = PUBLISHED + timedelta(seconds=2)
    last = replace(LAST, id=notification_id, published_at=PUBLISHED)
    notice = replace(NOTICE, data_id=DATA_ID, last=last, received_at=heard_at)
    with hub.runtime.ledger.transaction() as tx:
        tx.wis2.sources.add(SOURCE)
        tx.wis2.notices.take([notice])
        tx.wis2.notices.settle("dwd", [Ended(notice, State.HELD, sequence=sequence)])


async def test_a_product_leads_back_to_the_notification_by_which_it_came(hub: Asked) -> None:
    await brought(hub)
    product = await traced(hub)
    assert json.loads(product["bridged"]["properties"])["notification"] == MESSAGE
    statement = product["bridged"]["statement"]
    assert (statement["topic"], statement["centre"], statement["url"]) == (TOPIC, "de-dwd", "https://files.example/1")
    assert (statement["notification_id"], statement["kind"]) == (MESSAGE["id"], "canonical")
    assert statement["heard"]["bridge"] == "dwd"
    first, second = bridge_lines(product | {"stored_at": "2026-11-23T04:00:02.500000Z"})
    assert (TOPIC in first, MESSAGE["id"] in first) == (True, True)
    assert "published 2026-11-23T04:00:00, heard by dwd 2.00 s later, in the log 500.0 ms after that" in second


async def test_times_of_a_later_notification_are_not_those_of_the_product(hub: Asked) -> None:
    await brought(hub, sequence=2)
    product = await traced(hub)
    assert product["bridged"]["statement"]["heard"] is None
    assert "in the log 5.00 s later" in list(bridge_lines(product | {"stored_at": "2026-11-23T04:00:05Z"}))[1]


async def test_times_of_another_notification_are_not_shown(hub: Asked) -> None:
    await brought(hub, notification_id=MESSAGE["id"][:-1] + "9")
    assert (await traced(hub))["bridged"]["statement"]["heard"] is None


async def test_a_product_without_statements_has_none(hub: Asked) -> None:
    await brought(hub)
    for properties in (None, '{"source":"other"}', "no JSON"):
        hub.node.fake.properties[DATA_ID] = properties
        product = await traced(hub)
        assert product["bridged"] == {"properties": properties, "statement": None, "announced": []}
        assert list(bridge_lines(product)) == []


async def test_announcements_and_refusals_by_publishers_of_the_feed_are_shown(hub: Asked) -> None:
    await brought(hub)
    hub.node.fake.properties.clear()
    refused = replace(outgoing(2), sequence=1, epoch=EPOCH, step=Step.REFUSED, reason="it is recommended data")
    with hub.runtime.ledger.transaction() as tx:
        tx.wis2.publishers.add(replace(PUBLISHER, feed="WIS2"))
        tx.wis2.outbox.put([replace(outgoing(1), epoch=EPOCH), refused, replace(outgoing(3), epoch=EPOCH)])
        tx.wis2.outbox.settle(outgoing(1), Step.ANNOUNCED)
    product = await traced(hub)
    assert [(one["publisher"], one["step"]) for one in product["bridged"]["announced"]] == [
        ("synop", "announced"),
        ("synop", "refused"),
    ]
    announced, refused_line = bridge_lines(product)
    assert announced.startswith("to WIS2    synop announced it ")
    assert refused_line == "to WIS2    synop: refused: it is recommended data"
