"""A publisher between a feed and a real broker: each product announced once, whatever ends."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.test_ledger_publishers import PUBLISHER
from downburst.bus.local import LocalBus
from downburst.domain.bridges import BridgesNow, Broker, FetchEnd, WantedProduct
from downburst.domain.bridges.exporting import ExportedFile, ExportedProduct, Followed
from downburst.domain.bridges.publishers import Step
from downburst.domain.feeds import Feed
from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.clock import FakeClock, SystemClock
from downburst.foundation.errors import NotKept
from downburst.ledger import Ledger
from downburst.supervision import tasks
from downburst.wis2.notifications import read_notification
from downburst_bridges.brokers import Session, Subscription
from downburst_bridges.downloads import OfHub
from downburst_bridges.publishing.publisher import PublisherRunner, record_due
from downburst_bridges.service import Bridges
from factories import SOME_TIME
from kit.patience import wait_for
from kit.wis2.mosquitto import Mosquitto
from unit.wis2.test_records import DATASET


class Node:
    """A feed's log in memory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.epoch = "7"
        self.products: list[tuple[str, bytes | None]] = []

    async def follow(self, feed: str, after: int, *, limit: int = 100) -> Followed:
        some = list(enumerate(self.products, 1))[after : after + limit]
        products = tuple(self._exported(feed, number, *one) for number, one in some)
        return Followed(self.epoch, len(self.products), after + len(some), products)

    async def fetch(self, wanted: Sequence[WantedProduct], ended: Callable[[Sequence[FetchEnd]], None]) -> None:
        raise NotImplementedError

    async def ingest(self, path: Path, product: Product, *, remove: bool = True) -> Acknowledgement:
        raise NotImplementedError

    async def exported(self, feed: str, epoch: str, sequence: int) -> ExportedFile:
        name, content = self.products[sequence - 1]
        if content is None:
            raise NotKept("the log no longer has the bytes")
        path = self._directory / f"{epoch}-{sequence}"
        await asyncio.to_thread(path.write_bytes, content)
        digest = hashlib.sha512(content).digest()
        return ExportedFile(self._exported(feed, sequence, name, content), digest, path)

    def _exported(self, feed: str, number: int, name: str, content: bytes | None) -> ExportedProduct:
        return ExportedProduct(feed, self.epoch, number, name, len(content or b""), SOME_TIME)


class Scene:
    def __init__(self, ledger: Ledger, broker: Mosquitto, directory: Path) -> None:
        self.ledger, self.broker, self.node = ledger, broker, Node(directory)
        self.publisher = replace(PUBLISHER, broker=Broker(broker.url), enabled=True, pattern="^SM")
        with ledger.transaction() as tx:
            tx.feeds.add(Feed(PUBLISHER.feed))
            tx.wis2.publishers.add(self.publisher)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[PublisherRunner]:
        """The publisher at work."""
        runner = PublisherRunner(self.publisher, self.ledger, self.node, SystemClock())
        task = asyncio.create_task(runner.run())
        await self.until("a place", self.has_place)
        yield runner
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def put(self, *names: str) -> None:
        self.node.products += [(name, name.encode()) for name in names]

    async def until(self, what: str, condition: Callable[[], object]) -> None:
        await asyncio.to_thread(wait_for, what, condition)

    async def steps(self, **wanted: int) -> None:
        """Waits for so many notifications at each step."""
        await self.until(f"steps {wanted}", lambda: self._count() == wanted)

    def _count(self) -> dict[str, int]:
        with self.ledger.transaction(writes=False) as tx:
            return {step.value: count for step, count in tx.wis2.outbox.count("synop").items()}

    def has_place(self) -> bool:
        """True once the publisher has looked at its feed."""
        with self.ledger.transaction(writes=False) as tx:
            return tx.wis2.publishers.place("synop") is not None


@pytest.fixture
def scene(ledger: Ledger, tmp_path: Path) -> Iterator[Scene]:
    with Mosquitto() as broker:
        yield Scene(ledger, broker, tmp_path)


async def subscriber(scene: Scene) -> Subscription:
    session = Session("global-broker", ("origin/a/wis2/#",))
    made = Subscription(Broker(scene.broker.url), session, clock=SystemClock())
    made.start()
    await scene.until("a subscription", lambda: made.standing.bound)
    return made


async def heard(subscription: Subscription, count: int) -> list[str]:
    """The data ids of so many notifications."""
    found: list[str] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            for one in await subscription.next(100):
                found.append(read_notification(one.payload).data_id)
                subscription.acknowledge(one)
    return found


def data_ids(*names: str) -> list[str]:
    return [f"us-unidata/synop/{name}" for name in names]


async def test_new_products_that_match_are_announced_once_in_their_order(scene: Scene) -> None:
    scene.put("SM0")
    broker = await subscriber(scene)
    async with scene.running():
        names = [f"SM{number}" for number in range(1, 251)]
        scene.put(*names, "FT1")
        assert await heard(broker, 250) == data_ids(*names), "not those before, and not FT1"
        await scene.steps(announced=250)
    scene.put("SM251")
    async with scene.running() as runner:
        assert await heard(broker, 1) == data_ids("SM251")
        await scene.steps(announced=251)
        assert (runner.now.refusal, runner.now.behind) == ("", 0)
    await broker.stop()


async def test_what_nobody_is_subscribed_to_waits_for_a_subscriber(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("downburst_bridges.publishing.publisher.AGAIN_S", 0.2)
    async with scene.running() as runner:
        scene.put("SM1", "SM2")
        await scene.until("a refusal", lambda: "no client is subscribed" in runner.now.refusal)
        await scene.steps(waiting=2)
        broker = await subscriber(scene)
        assert await heard(broker, 2) == data_ids("SM1", "SM2")
        await scene.steps(announced=2)
        await broker.stop()


async def test_a_broker_that_was_away_gets_everything_after_it(scene: Scene) -> None:
    broker = await subscriber(scene)
    async with scene.running() as runner:
        scene.broker.kill()
        await scene.until("the loss", lambda: runner.now.standing.connected_at is None)
        scene.put("SM1", "SM2", "SM3")
        await scene.steps(waiting=3)
        await asyncio.to_thread(scene.broker.start)
        assert sorted(set(await heard(broker, 3))) == data_ids("SM1", "SM2", "SM3")
        await scene.steps(announced=3)
    await broker.stop()


async def test_changed_bytes_are_an_update_and_equal_ones_are_not_announced_again(scene: Scene) -> None:
    broker = await subscriber(scene)
    async with scene.running():
        scene.put("SM1")
        scene.node.products += [("SM1", b"SM1"), ("SM1", b"corrected"), ("SM2", None)]
        assert await heard(broker, 2) == data_ids("SM1", "SM1")
        await scene.steps(announced=2, refused=2)
    with scene.ledger.transaction(writes=False) as tx:
        kinds = [one.kind for one in tx.wis2.outbox.newest("synop", Step.ANNOUNCED)]
        reasons = {one.reason for one in tx.wis2.outbox.newest("synop", Step.REFUSED)}
    assert kinds == ["update", "canonical"]
    assert reasons == {
        "the same bytes were announced before under this data id", "the log no longer has the bytes"
    }  # fmt: skip
    await broker.stop()


def test_the_record_is_announced_each_day_and_after_each_change(
    ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    publisher = replace(PUBLISHER, dataset=DATASET)
    with ledger.transaction() as tx:
        tx.feeds.add(Feed(PUBLISHER.feed))
        tx.wis2.publishers.add(publisher)
        assert not record_due(tx, publisher=PUBLISHER), "without a dataset"
        assert record_due(tx, publisher=publisher)
        assert not record_due(tx, publisher=publisher), "once"
        clock.advance(86_400)
        assert record_due(tx, publisher=publisher)
        clock.advance(60)
        assert record_due(tx, publisher=replace(publisher, dataset=replace(DATASET, title="Another one")))
        sent = tx.wis2.outbox.waiting("synop")
    assert [one.kind for one in sent] == ["canonical", "update", "update"]
    assert {one.topic for one in sent} == {"origin/a/wis2/us-unidata/metadata"}
    assert len({one.id for one in sent}) == 3
    message = read_notification(sent[0].payload)
    assert message.link.url == "https://hub.example/wis2/synop/record.json"


async def test_a_log_that_began_anew_is_followed_from_its_begin(scene: Scene) -> None:
    broker = await subscriber(scene)
    async with scene.running():
        scene.put("SM1")
        assert await heard(broker, 1) == data_ids("SM1")
        scene.node.epoch, scene.node.products = "8", []
        scene.put("SM2")
        assert await heard(broker, 1) == data_ids("SM2")
    await broker.stop()


async def test_an_unknown_error_in_any_handler_stops_one_product_at_most(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed = {"bridges.publisher", "bridges.follow", "bridges.announce", "bridges.record"}
    enter = tasks._enter

    def throw(handler: str, work: Callable[[], Any]) -> Any:
        if handler in armed:
            armed.remove(handler)
            raise ValueError(handler)
        return enter(handler, work)

    monkeypatch.setattr(tasks, "_enter", throw)
    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.05)
    broker = await subscriber(scene)
    hub, now = OfHub(tmp_path / "spool", "hub", SystemClock()), BridgesNow()
    running = asyncio.create_task(Bridges(LocalBus(), scene.ledger, scene.node, hub, now).run())
    await scene.until("a place", scene.has_place)
    scene.put("SM1", "SM2")
    assert await heard(broker, 1) == data_ids("SM2")
    await scene.steps(announced=1, refused=1)
    with scene.ledger.transaction(writes=False) as tx:
        (refused,) = tx.wis2.outbox.newest("synop", Step.REFUSED)
    assert refused.reason == "an error of this hub: its faults have it"
    assert armed == set()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await broker.stop()
