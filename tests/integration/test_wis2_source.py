"""A source between real brokers and a node: each product once, whatever ends meanwhile."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.bridges import BridgesNow, Broker, FetchEnd, Hole, State, WantedProduct, Wis2Source
from downburst.domain.bridges.exporting import ExportedFile, Followed
from downburst.domain.feeds import Feed
from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.clock import SystemClock
from downburst.foundation.errors import NodeAway, NotFetched
from downburst.ledger import Ledger
from downburst.supervision import FAULTS, tasks
from downburst.wis2.properties import stated_in
from downburst_bridges.backlog import AT_ONCE_OF_CENTRE
from downburst_bridges.downloads import OfHub
from downburst_bridges.service import Bridges
from downburst_bridges.source import SourceRunner
from kit.patience import wait_for
from kit.wis2.mosquitto import Mosquitto
from unit.bridges.test_intake import TOPIC, message


class Node:
    """Answers as a node does, and stores nothing."""

    def __init__(self) -> None:
        self.stored: dict[str, Product] = {}
        self.attempts = 0
        self.refusals: dict[str, Exception] = {}

    async def fetch(self, wanted: Sequence[WantedProduct], ended: Callable[[Sequence[FetchEnd]], None]) -> None:
        for place, one in enumerate(wanted):
            self.attempts += 1
            error = self.refusals.get(one.product.product_id)
            if error is None:
                ended([FetchEnd(place, self._keep(one.product).sequence, 1)])
            elif isinstance(error, NotFetched):
                ended([FetchEnd(place, refusal=error)])
            else:
                raise error

    async def ingest(self, path: Path, product: Product, *, remove: bool = True) -> Acknowledgement:
        assert remove
        await asyncio.to_thread(path.unlink)
        return self._keep(product)

    async def follow(self, feed: str, after: int, *, limit: int = 100) -> Followed:
        raise NotImplementedError

    async def exported(self, feed: str, epoch: str, sequence: int) -> ExportedFile:
        raise NotImplementedError

    def _keep(self, product: Product) -> Acknowledgement:
        assert product.product_id not in self.stored, "each product comes once"
        self.stored[product.product_id] = product
        return Acknowledgement(1, "", sequence=len(self.stored))


@pytest.fixture
def brokers() -> Iterator[tuple[Mosquitto, Mosquitto]]:
    with Mosquitto() as one, Mosquitto() as two:
        yield one, two


class Scene:
    def __init__(
        self, ledger: Ledger, node: Node, brokers: tuple[Mosquitto, ...], directory: Path, *, mqtt: int = 5
    ) -> None:
        self.ledger, self.node, self.brokers, self._directory = ledger, node, brokers, directory
        made = tuple(Broker(one.url, mqtt=mqtt) for one in brokers)
        self.source = Wis2Source("dwd", "WIS2", made, ("cache/a/wis2/#",))
        with ledger.transaction() as tx:
            tx.feeds.add(Feed("WIS2"))
            tx.wis2.sources.add(self.source)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SourceRunner]:
        """The source at work."""
        runner = SourceRunner(self.source, self.ledger, self.node, OfHub(self._directory, "hub", SystemClock()))
        task = asyncio.create_task(runner.run())
        await self.until("subscriptions", lambda: self._bound(runner) == len(self.brokers))
        yield runner
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def until(self, what: str, condition: Callable[[], Any], seconds: float = 30.0) -> None:
        await asyncio.to_thread(wait_for, what, condition, seconds)

    async def publish(self, broker: Mosquitto, *messages: dict[str, Any]) -> None:
        await asyncio.to_thread(broker.publish, TOPIC, [json.dumps(one).encode() for one in messages])

    def count(self) -> dict[State, int]:
        with self.ledger.transaction(writes=False) as tx:
            return dict(tx.wis2.notices.count("dwd"))

    async def holes(self, count: int) -> list[Hole]:
        def found() -> list[Hole]:
            with self.ledger.transaction(writes=False) as tx:
                return tx.wis2.holes.of("dwd")

        await self.until(f"{count} holes", lambda: len(found()) >= count)
        return found()

    @staticmethod
    def _bound(runner: SourceRunner) -> int:
        return sum(one.bound for one in runner.now.standings.values())


@pytest.fixture
def scene(ledger: Ledger, brokers: tuple[Mosquitto, Mosquitto], tmp_path: Path) -> Scene:
    return Scene(ledger, Node(), brokers, tmp_path / "spool")


async def test_the_same_notifications_by_two_brokers_are_one_product_each(scene: Scene) -> None:
    messages = [message(number, of=number) for number in range(100)]
    async with scene.running():
        await asyncio.gather(*(scene.publish(broker, *messages) for broker in scene.brokers))
        await scene.until("all products", lambda: len(scene.node.stored) == 100)
        await scene.until("their end", lambda: scene.count() == {State.HELD: 100})
    product = scene.node.stored["de-dwd/synop/7"]
    assert (product.feed, product.origin) == ("WIS2", "de-dwd")
    assert product.properties is not None
    stated = stated_in(product.properties)
    assert stated is not None
    assert (stated.topic.text, stated.notification.data_id) == (TOPIC, "de-dwd/synop/7")


async def test_what_came_while_the_hub_was_away_is_taken_once(scene: Scene) -> None:
    async with scene.running():
        await scene.publish(scene.brokers[0], *(message(number, of=number) for number in range(20)))
        await scene.until("the first ones", lambda: len(scene.node.stored) == 20)
    for broker in scene.brokers:
        await scene.publish(broker, *(message(number, of=number) for number in range(10, 60)))
    async with scene.running():
        await scene.until("the others", lambda: len(scene.node.stored) == 60)


async def test_a_session_that_a_broker_lost_is_a_hole_unless_the_other_stood_in(scene: Scene) -> None:
    one, two = scene.brokers
    async with scene.running():
        await scene.publish(two, message(1, of=1))
        await scene.until("the product", lambda: len(scene.node.stored) == 1)
        await asyncio.to_thread(one.lose_sessions)
        (stood_in,) = await scene.holes(1)
        assert (stood_in.broker, stood_in.filled_at is not None) == (one.url, True)
    await asyncio.to_thread(two.lose_sessions)
    async with scene.running():
        lost, _ = await scene.holes(2)
        assert (lost.broker, lost.filled_at) == (two.url, None)
        assert lost.reason == "the broker did not keep the session"


async def test_a_product_that_can_not_be_fetched_waits_for_a_person_and_hurts_no_other(scene: Scene) -> None:
    scene.node.refusals["de-dwd/synop/1"] = NotFetched("the server answers with status 404")
    async with scene.running():
        await scene.publish(scene.brokers[0], *(message(number, of=number) for number in range(3)))
        await scene.until("their ends", lambda: scene.count() == {State.HELD: 2, State.FAILED: 1})
        with scene.ledger.transaction() as tx:
            (failed,) = tx.wis2.notices.failed("dwd")
            assert failed.reason == "the server answers with status 404"
            scene.node.refusals.clear()
            assert tx.wis2.notices.again("dwd") == 1
        await scene.until("the one", lambda: scene.count() == {State.HELD: 3})


async def test_a_centre_whose_server_hangs_leaves_room_for_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch, hangs, waiting = scene.node.fetch, asyncio.Event(), list[str]()

    async def hanging(wanted: Sequence[WantedProduct], ended: Callable[[Sequence[FetchEnd]], None]) -> None:
        async def one_of_them(place: int, one: WantedProduct) -> None:
            if one.product.origin == "de-dwd":
                waiting.append(one.product.product_id)
                await hangs.wait()
            await fetch([one], lambda ends: ended([replace(end, place=place) for end in ends]))

        await asyncio.gather(*(one_of_them(*one) for one in enumerate(wanted)))

    monkeypatch.setattr(scene.node, "fetch", hanging)
    count = AT_ONCE_OF_CENTRE + 20
    others = [message(number, of=number, data_id=f"fr-meteofrance/{number}") for number in range(count, count + 5)]
    async with scene.running():
        await scene.publish(scene.brokers[0], *(message(number, of=number) for number in range(count)))
        await scene.until("its share", lambda: len(waiting) == AT_ONCE_OF_CENTRE)
        payloads = [json.dumps(one).encode() for one in others]
        await asyncio.to_thread(scene.brokers[0].publish, TOPIC.replace("de-dwd", "fr-meteofrance"), payloads)
        await scene.until("those of the other centre", lambda: scene.count().get(State.HELD) == 5)
        assert len(waiting) == AT_ONCE_OF_CENTRE
        hangs.set()
        await scene.until("all", lambda: scene.count() == {State.HELD: count + 5})


async def test_an_error_of_the_hub_itself_ends_one_product_and_is_no_loop(scene: Scene) -> None:
    scene.node.refusals["de-dwd/synop/1"] = ValueError("a case that was forgotten")
    async with scene.running():
        await scene.publish(scene.brokers[0], *(message(number, of=number) for number in range(3)))
        await scene.until("their ends", lambda: scene.count() == {State.HELD: 2, State.FAILED: 1})
    with scene.ledger.transaction(writes=False) as tx:
        (failed,) = tx.wis2.notices.failed("dwd")
    assert failed.reason == "an error of this hub: its faults have it"
    assert scene.node.attempts <= 4, "the others of its group are fetched once more at most"


async def test_an_unknown_error_in_any_handler_stops_one_thing_at_most(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed = {"bridges.source", "bridges.intake", "bridges.read", "bridges.fetch", "bridges.ends", "bridges.hole"}
    enter = tasks._enter

    def throw(handler: str, work: Callable[[], Any]) -> Any:
        if handler in armed:
            armed.remove(handler)
            raise ValueError(handler)
        return enter(handler, work)

    monkeypatch.setattr(tasks, "_enter", throw)
    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.05)
    monkeypatch.setattr("downburst_bridges.downloads.AGAIN_S", 0.1)
    bridges = BridgesNow()
    now = bridges.sources
    hub = OfHub(tmp_path / "spool", "hub", SystemClock())
    running = asyncio.create_task(Bridges(LocalBus(), scene.ledger, scene.node, hub, bridges).run())
    await scene.until("a source", lambda: "dwd" in now and len(now["dwd"].standings) == 2)
    await scene.until("subscriptions", lambda: all(one.bound for one in now["dwd"].standings.values()))
    await scene.publish(scene.brokers[0], *(message(number, of=number) for number in range(10)))
    await scene.until("their ends", lambda: scene.count() == {State.HELD: 8, State.FAILED: 1})
    (refused,) = now["dwd"].passed_over
    assert refused.sentence == "an error of this hub: its faults have it"
    await asyncio.to_thread(scene.brokers[1].lose_sessions)
    await scene.holes(1)
    assert armed == set()
    assert {"bridges.source", "bridges.intake"} <= {fault.handler for fault in FAULTS.all()}
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_node_that_is_away_is_asked_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("downburst_bridges.downloads.AGAIN_S", 0.1)
    scene.node.refusals["de-dwd/synop/1"] = NodeAway("the node is not running")
    async with scene.running():
        await scene.publish(scene.brokers[0], message(1, of=1))
        await scene.until("several attempts", lambda: scene.node.attempts >= 3)
        assert scene.count() == {State.COMING: 1}
        scene.node.refusals.clear()
        await scene.until("the product", lambda: scene.count() == {State.HELD: 1})


async def test_bytes_within_a_notification_are_stored_without_a_download(scene: Scene) -> None:
    inline = message(1, of=1, content={"encoding": "utf-8", "value": "abc", "size": 3})
    del inline["properties"]["integrity"]
    async with scene.running() as runner:
        await scene.publish(scene.brokers[1], inline, {"type": "nothing"})
        await scene.until("the product", lambda: scene.count() == {State.HELD: 1})
        await scene.until("the other's reason", lambda: runner.now.passed_over)
    assert scene.node.attempts == 0
