"""The bus, of one process and over Kafka: the same tests on both, the latter on a real broker."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from downburst.bus.local import BusSubscription, LocalBus
from downburst.bus.port import Bus
from downburst.domain.events import Event, FeedsChanged, HandlerFailed, PinChanged, PlanMade, SitesChanged
from downburst.domain.plans import Plan
from downburst.kafka.bus import KafkaBus
from downburst.settings.kafka import KafkaSettings
from downburst.supervision import FAULTS, start
from downburst.supervision.remote_faults import tell_faults
from factories import plan, unicast
from kit.kafka import Kafka


class Pair:
    """The publishing and the listening end."""

    def __init__(self, here: Bus, there: Bus) -> None:
        self.here = here
        self.there = there


@pytest.fixture(params=["in one process", "over Kafka", "over Kafka, in one process"])
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    if request.param == "in one process":
        bus: Bus = LocalBus()
        yield Pair(bus, bus)
        return
    settings = KafkaSettings(servers=request.getfixturevalue("broker").address, prefix=f"test-{next(NUMBERS)}")
    here = await KafkaBus(settings).open()
    there = here if "in one process" in request.param else await KafkaBus(settings).open()
    yield Pair(here, there)
    here.close()
    there.close()


async def test_each_subscriber_gets_what_it_asked_for(pair: Pair) -> None:
    every, some = pair.there.subscribe(), pair.there.subscribe(FeedsChanged)
    pair.here.publish(SitesChanged())
    pair.here.publish(FeedsChanged())
    assert [await heard(every), await heard(every)] == [SitesChanged(), FeedsChanged()]
    assert await heard(some) == FeedsChanged()


async def test_events_come_once_and_in_the_order_of_their_publisher(pair: Pair) -> None:
    every = pair.there.subscribe(limit=10_000)
    published = [PinChanged(f"feed {number}") for number in range(2_000)]
    for event in published:
        pair.here.publish(event)
    assert [await heard(every) for _ in published] == published
    pair.here.publish(SitesChanged())
    assert await heard(every) == SitesChanged()


async def test_a_slow_subscriber_loses_the_oldest_and_is_told(pair: Pair) -> None:
    slow, other = pair.there.subscribe(PinChanged, limit=2), pair.there.subscribe()
    for number in range(5):
        pair.here.publish(PinChanged(str(number)))
    pair.here.publish(SitesChanged())
    while await heard(other) != SitesChanged():
        pass
    assert slow.take_dropped() == 3
    assert slow.take_dropped() == 0
    assert [await heard(slow), await heard(slow)] == [PinChanged("3"), PinChanged("4")]


async def test_a_waiting_subscriber_wakes_for_an_event_and_for_the_end(pair: Pair) -> None:
    seen: list[Event] = []

    async def listen(events: BusSubscription) -> None:
        seen.extend([event async for event in events])

    listening = asyncio.create_task(listen(pair.there.subscribe()))
    other = pair.there.subscribe()
    pair.here.publish(SitesChanged())
    await heard(other)
    pair.there.close()
    await asyncio.wait_for(listening, 20)
    assert seen == [SitesChanged()]


async def test_what_is_published_after_the_end_reaches_nobody(pair: Pair) -> None:
    left = pair.there.subscribe()
    left.close()
    pair.here.publish(SitesChanged())
    assert left.closed
    assert await left.next() is None


async def test_the_newest_plan_of_each_feed_is_known(pair: Pair) -> None:
    every = pair.there.subscribe()
    made = [_plan("NGRID", 1), _plan("TEXT", 1), _plan("NGRID", 2)]
    for one in made:
        pair.here.publish(PlanMade(one))
    assert [await heard(every) for _ in made] == [PlanMade(one) for one in made]
    assert pair.there.plans() == [PlanMade(made[2]), PlanMade(made[1])]


async def test_a_fault_is_heard_by_the_alarms_of_another_process_once_however_often_it_is_met(pair: Pair) -> None:
    """The sender bounds them: a thousand faults of a handler are one event per minute, with the count."""
    heard_there = pair.there.subscribe(HandlerFailed, SitesChanged)
    telling = start("test.telling", tell_faults(pair.here, "scheduler on a"))
    await asyncio.sleep(0)
    for _ in range(1_000):
        FAULTS.caught("scheduler.look", KeyError("x" * 10_000), "a feed")
    # The fault's thread has passed its event to the loop; that event goes before those published now.
    await asyncio.sleep(0)
    pair.here.publish(SitesChanged())
    found = []
    while (event := await heard(heard_there)) != SitesChanged():
        found.append(event)
    telling.cancel()
    (failed,) = found
    assert isinstance(failed, HandlerFailed)
    assert (failed.process, failed.handler, failed.what) == ("scheduler on a", "scheduler.look", "a feed")
    assert len(failed.error) <= 200


async def test_who_opens_a_bus_later_knows_the_plans_in_force(broker: Kafka) -> None:
    settings = KafkaSettings(servers=broker.address, prefix=f"test-{next(NUMBERS)}")
    first = await KafkaBus(settings).open()
    for version in range(1, 4):
        first.publish(PlanMade(_plan("NGRID", version)))
    first.close()
    later = await KafkaBus(settings).open()
    assert later.plans() == [PlanMade(_plan("NGRID", 3))]
    seen = later.subscribe()
    later.publish(SitesChanged())
    assert await heard(seen) == SitesChanged(), "what was published before is not told again"
    later.close()


async def heard(subscription: BusSubscription, seconds: float = 60) -> Event | None:
    async with asyncio.timeout(seconds):
        return await subscription.next()


def _plan(feed: str, version: int) -> Plan:
    made = plan(feed, unicast(1, "unl.edu"))
    return Plan(feed, version, made.legs, made.reason, made.made_at, figures={"mean_bps": 1.5, "because": "start"})


NUMBERS = count(1)
