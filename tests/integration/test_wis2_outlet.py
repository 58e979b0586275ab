"""Notifications to a real broker: announced, refused, or nobody's."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from downburst.domain.bridges import Broker
from downburst.foundation.clock import SystemClock
from downburst_bridges.brokers import Session, Subscription
from downburst_bridges.publishing.broker import NotAnnounced, Outlet
from kit.patience import wait_for
from kit.wis2.mosquitto import Mosquitto

TOPIC = "origin/a/wis2/us-unidata/data/core/weather"


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    rights = "user node\ntopic readwrite origin/#\nuser everyone\ntopic read #\n"
    with Mosquitto(passwords={"node": "secret", "everyone": "everyone"}, rights=rights) as started:
        yield started


async def until(what: str, condition: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_for, what, condition)


async def outlet(broker: Mosquitto, user: str = "node", password: str = "secret") -> Outlet:
    made = Outlet(Broker(broker.url, user, password), client_id=f"downburst-{user}", clock=SystemClock())
    made.start()
    return made


async def subscriber(broker: Mosquitto) -> Subscription:
    made = Subscription(Broker(broker.url), Session("global-broker", ("origin/#",)), clock=SystemClock())
    made.start()
    await until("a subscription", lambda: made.standing.bound)
    return made


async def test_a_notification_is_announced_once_somebody_is_subscribed(broker: Mosquitto) -> None:
    out = await outlet(broker)
    await out.is_connected()
    with pytest.raises(NotAnnounced, match="no client is subscribed"):
        await out.announce(TOPIC, b"1")
    heard = await subscriber(broker)
    await out.announce(TOPIC, b"2")
    assert [one.payload for one in await heard.next(10)] == [b"2"]
    await asyncio.gather(*(out.announce(TOPIC, b"%d" % number) for number in range(300)))
    await heard.stop()
    await out.stop()


async def test_a_broker_that_denies_a_topic_is_heard(broker: Mosquitto) -> None:
    heard = await subscriber(broker)
    out = await outlet(broker)
    await out.is_connected()
    with pytest.raises(NotAnnounced, match=r"the broker refuses it: not authorized \(135\)"):
        await out.announce(TOPIC.replace("origin", "cache"), b"1")
    await out.announce(TOPIC, b"2")
    await heard.stop()
    await out.stop()


async def test_a_wrong_password_is_one_sentence(broker: Mosquitto) -> None:
    out = await outlet(broker, password="wrong")
    await until("a fault", lambda: "refuses user node: not authorized" in out.standing.fault)
    with pytest.raises(NotAnnounced, match="the broker is away: the broker refuses user node: not authorized"):
        await out.announce(TOPIC, b"1")
    await out.stop()


async def test_a_broker_that_was_killed_is_found_again(broker: Mosquitto) -> None:
    out = await outlet(broker)
    await out.is_connected()
    broker.kill()
    await until("a fault", lambda: out.standing.connected_at is None)
    with pytest.raises(NotAnnounced, match="the broker is away"):
        await out.announce(TOPIC, b"1")
    await asyncio.to_thread(broker.start)
    heard = await subscriber(broker)
    await out.is_connected()
    await out.announce(TOPIC, b"2")
    assert b"2" in [one.payload for one in await heard.next(10)]
    assert replace(out.standing, connected_at=None, last_at=None).fault == ""
    await heard.stop()
    await out.stop()
