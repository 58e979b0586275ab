"""Deliveries to sites that other nodes of the hub serve: requested over the bus, answered by senders."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from downburst.bus.local import LocalBus
from downburst.deliveries import FoundDeliveries
from downburst.foundation.errors import BadInput
from downburst_worker.messages.delivery_lines import found_deliveries
from downburst_worker.remote import deliveries as remote_deliveries
from downburst_worker.remote.answering import answer_for_good
from downburst_worker.remote.deliveries import RemoteDeliveries

Line = dict[str, Any]


async def test_receipts_and_sessions_of_senders_are_added() -> None:
    bus = LocalBus()
    async with answering(bus, "one", [site("oslo", receipts=[receipt(7)])]), answering(bus, "two", [site("rome")]):
        found = await RemoteDeliveries(bus).add(
            hub_found(site("oslo"), site("rome")), senders=["one", "two"], site=None
        )
    (_, (oslo, rome)) = found.products[0]
    assert [one.leg for one in oslo.receipts] == [7]
    assert rome.receipts == ()
    assert found.receipts_complete


async def test_a_sender_that_says_nothing_is_not_waited_for_and_the_answer_says_so(monkeypatch: Any) -> None:
    monkeypatch.setattr(remote_deliveries, "ANSWER_S", 0.2)
    bus = LocalBus()
    async with answering(bus, "one", [site("oslo", receipts=[receipt(7)])]):
        found = await RemoteDeliveries(bus).add(hub_found(site("oslo")), senders=["one", "dead"], site=None)
    (_, (oslo,)) = found.products[0]
    assert len(oslo.receipts) == 1
    assert not found.receipts_complete


async def test_a_sender_that_does_not_have_the_feed_is_not_missed_and_too_long_an_answer_is_not_sent(
    monkeypatch: Any,
) -> None:
    bus = LocalBus()
    async with answering(bus, "one", None):
        found = await RemoteDeliveries(bus).add(hub_found(site("oslo")), senders=["one"], site="oslo")
    assert found == hub_found(site("oslo"))
    monkeypatch.setattr(remote_deliveries, "ANSWER_BYTES", 100)
    async with answering(bus, "one", [site("oslo", receipts=[receipt(7)])]):
        found = await RemoteDeliveries(bus).add(hub_found(site("oslo")), senders=["one"], site="oslo")
    assert found.products == hub_found(site("oslo")).products


async def test_without_senders_nobody_is_asked() -> None:
    bus = LocalBus()
    with bus.subscribe() as heard:
        assert await RemoteDeliveries(bus).add(hub_found(site("oslo")), senders=[], site=None) == hub_found(
            site("oslo")
        )
        assert heard.take_dropped() == 0
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                async for event in heard:
                    raise AssertionError(event)


@asynccontextmanager
async def answering(bus: LocalBus, name: str, sites: Sequence[Line] | None) -> AsyncIterator[None]:
    """A sender whose node has these deliveries of each product; with None it does not have the feed."""

    async def ask(do: str, **job: Any) -> Line:
        assert do == "deliveries"
        if sites is None:
            raise BadInput("there is no feed of that name here")
        return deliveries(job["sequence"], sites)

    task = asyncio.create_task(answer_for_good(bus, name, ask))
    await asyncio.sleep(0)
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def hub_found(*sites: Line) -> FoundDeliveries:
    return replace(found_deliveries(deliveries(3, sites)))


def deliveries(sequence: int, sites: Sequence[Line]) -> Line:
    product = {
        "feed": "NGRID",
        "epoch": "9",
        "sequence": sequence,
        "product_id": "nam",
        "origin": "hub",
        "created_us": 1,
        "stored_us": 2,
        "size": 10,
        "digest": "ab",
        "class": "grid",
        "kept": True,
        "sites": list(sites),
    }
    return {
        "feed": "NGRID",
        "epoch": "9",
        "products": [product],
        "searched_to": 0,
        "search_complete": True,
        "receipts_complete": True,
        "receipts_since_us": None,
        "at_us": 5,
    }


def site(name: str, *, receipts: Sequence[Line] = ()) -> Line:
    return {
        "site": name,
        "active": True,
        "subscriptions": 1,
        "matching": [],
        "session": None,
        "receipts": list(receipts),
    }


def receipt(leg: int) -> Line:
    return {
        "outcome": "stored",
        "lane": "live",
        "transport": "unicast",
        "leg": leg,
        "repaired": False,
        "first_byte_us": 3,
        "last_byte_us": 4,
        "site_stored_us": 5,
        "action_done_us": None,
        "clock_offset_us": 0,
        "clock_bound_us": 200,
        "sent_before": [],
    }
