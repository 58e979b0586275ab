"""A durable subscription at a real broker: nothing is lost over crashes of either end, and nothing is kept unread."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from downburst.domain.bridges import Broker
from downburst.foundation.clock import SystemClock
from downburst_bridges.brokers import Delivered, Session, Subscription
from kit.patience import wait_for
from kit.wis2.mosquitto import Mosquitto

TOPIC = "cache/a/wis2/de-dwd/data/core/weather"


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with Mosquitto() as started:
        yield started


SESSION = Session("downburst-test", ("cache/a/wis2/#",))


def subscription(broker: Mosquitto, session: Session = SESSION, *, mqtt: int = 5) -> Subscription:
    made = Subscription(Broker(broker.url, mqtt=mqtt), session, clock=SystemClock())
    made.start()
    return made


async def until(what: str, condition: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_for, what, condition)


async def bound(subscription: Subscription) -> None:
    await until("a subscription", lambda: subscription.standing.bound)


async def heard(subscription: Subscription, count: int) -> list[Delivered]:
    found: list[Delivered] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            found += await subscription.next(100)
    return found


def numbered(first: int, count: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


@pytest.mark.parametrize("mqtt", [5, 311])
async def test_messages_without_acknowledgement_come_again_in_their_order(broker: Mosquitto, mqtt: int) -> None:
    first = subscription(broker, mqtt=mqtt)
    await bound(first)
    assert not first.standing.session_present
    await asyncio.to_thread(broker.publish, TOPIC, numbered(0, 15))
    messages = await heard(first, 15)
    assert [one.payload for one in messages] == numbered(0, 15)
    for one in messages[:5]:
        first.acknowledge(one)
    await first.stop()
    await asyncio.to_thread(broker.publish, TOPIC, numbered(15, 5))
    again = subscription(broker, mqtt=mqtt)
    messages = await heard(again, 15)
    assert again.standing.session_present
    assert [one.payload for one in messages] == numbered(5, 15)
    await again.stop()


@pytest.mark.parametrize("mqtt", [5, 311])
async def test_topics_that_a_source_no_longer_takes_come_no_more(broker: Mosquitto, mqtt: int) -> None:
    first = subscription(broker, replace(SESSION, filters=("cache/a/wis2/#", "origin/a/wis2/#")), mqtt=mqtt)
    await until("two topics", lambda: first.standing.bound == 2)
    await first.stop()
    again = subscription(broker, replace(SESSION, former_filters=("origin/a/wis2/#",)), mqtt=mqtt)
    await bound(again)
    await asyncio.to_thread(broker.publish, TOPIC, numbered(0, 1))
    await heard(again, 1)
    await asyncio.to_thread(broker.publish, TOPIC.replace("cache/", "origin/"), numbered(1, 1))
    await asyncio.to_thread(broker.publish, TOPIC, numbered(2, 1))
    assert [one.payload for one in await heard(again, 1)] == numbered(2, 1)
    await again.stop()


async def test_a_broker_that_was_killed_is_asked_again_and_the_loss_is_seen(broker: Mosquitto) -> None:
    client = subscription(broker)
    await bound(client)
    broker.kill()
    await until("a fault", lambda: client.standing.fault)
    assert client.standing.connected_at is None
    await asyncio.to_thread(broker.start)
    await bound(client)
    assert not client.standing.fault
    await asyncio.to_thread(broker.publish, TOPIC, numbered(0, 3))
    assert len(await heard(client, 3)) == 3
    await client.stop()


async def test_a_broker_that_is_away_is_named_with_its_port() -> None:
    with Mosquitto() as gone:
        pass
    client = subscription(gone)
    await until("a fault that names the port", lambda: str(gone.port) in client.standing.fault)
    await client.stop()


async def test_a_wrong_password_is_one_sentence() -> None:
    with Mosquitto(passwords={"everyone": "another one"}) as guarded:
        client = subscription(guarded)
        await until("a fault", lambda: client.standing.fault.startswith("the broker refuses user everyone: not auth"))
        await client.stop()
