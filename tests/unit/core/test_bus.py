"""The bus hands on, bounds, and tells of losses."""

import asyncio

from downburst.bus import Bus
from downburst.events import Event, FeedsChanged, PinChanged, SitesChanged


async def test_each_subscriber_gets_what_it_asked_for() -> None:
    bus = Bus()
    every, some = bus.subscribe(), bus.subscribe(FeedsChanged)
    bus.publish(SitesChanged())
    bus.publish(FeedsChanged())
    assert [await every.next(), await every.next()] == [SitesChanged(), FeedsChanged()]
    assert await some.next() == FeedsChanged()


async def test_a_slow_subscriber_loses_the_oldest_and_is_told() -> None:
    bus = Bus()
    slow = bus.subscribe(limit=2)
    for number in range(5):
        bus.publish(PinChanged(str(number)))
    assert slow.take_dropped() == 3
    assert slow.take_dropped() == 0
    assert [await slow.next(), await slow.next()] == [PinChanged("3"), PinChanged("4")]


async def test_a_waiting_subscriber_wakes_for_an_event_and_for_the_end() -> None:
    bus = Bus()
    seen: list[Event] = []

    async def listen() -> None:
        with bus.subscribe() as events:
            seen.extend([event async for event in events])

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    bus.publish(SitesChanged())
    await asyncio.sleep(0)
    bus.close()
    await asyncio.wait_for(listening, 5)
    assert seen == [SitesChanged()]


async def test_what_is_published_after_the_end_reaches_nobody() -> None:
    bus = Bus()
    left = bus.subscribe()
    left.close()
    bus.publish(SitesChanged())
    assert left.closed
    assert await left.next() is None
