"""Holes that brokers leave, filled from a replay service: every data id, or a reason at the hole."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.bridges import Hole, State
from downburst.foundation.errors import Failure
from downburst.ledger import Ledger
from downburst.supervision import FAULTS, tasks
from downburst_bridges import replay, web
from downburst_bridges.web import Web
from integration.test_wis2_source import Node, Scene
from kit.wis2.mosquitto import Mosquitto
from kit.wis2.services import Collection, keep_notification, replay_service
from unit.bridges.test_intake import TOPIC, message


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collection]:
    monkeypatch.setattr(replay, "SETTLE", timedelta(0))
    monkeypatch.setattr(replay, "FIRST_PAUSE_S", 0.05)
    with replay_service() as started:
        yield started


def published(number: int, at: datetime | None = None, **more: Any) -> dict[str, Any]:
    """A notification that is published now, or at another time."""
    pubtime = (at or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return message(number, of=number, pubtime=pubtime, **more)


def replayed_scene(ledger: Ledger, broker: Mosquitto, directory: Path, service: Collection, **more: Any) -> Scene:
    scene = Scene(ledger, Node(), (broker,), directory / "spool")
    wanted = replace(scene.source, replay_url=service.url, may_ask_private=True, **more)
    with ledger.transaction() as tx:
        scene.source = tx.wis2.sources.change(wanted)
    return scene


async def hole_when(scene: Scene, condition: Callable[[Hole], object]) -> Hole:
    await scene.holes(1)

    def found() -> bool:
        with scene.ledger.transaction(writes=False) as tx:
            return bool(condition(tx.wis2.holes.of("dwd")[0]))

    await scene.until("the end of a hole", found)
    with scene.ledger.transaction(writes=False) as tx:
        return tx.wis2.holes.of("dwd")[0]


async def lose_some(scene: Scene, broker: Mosquitto, service: Collection, count: int) -> None:
    """Stores one product, and has the broker lose the session with so many others."""
    async with scene.running():
        await scene.publish(broker, published(0))
        await scene.until("the first one", lambda: scene.count() == {State.HELD: 1})
    for number in range(1, count + 1):
        keep_notification(service, TOPIC, published(number))
    await asyncio.to_thread(broker.lose_sessions)


async def test_a_replay_fills_the_hole_of_a_lost_session(ledger: Ledger, tmp_path: Path, service: Collection) -> None:
    with Mosquitto() as broker:
        scene = replayed_scene(ledger, broker, tmp_path, service)
        await lose_some(scene, broker, service, 30)
        keep_notification(service, TOPIC.replace("cache/", "origin/"), published(99))
        service.features.append({"type": "Feature", "properties": None})
        service.features[-1] = {"type": "Feature", "id": "x", "properties": {"pubtime": "2026-11-29T00:00:00Z"}}
        service.fits = lambda _feature, _q: True
        service.failures = [503, b"<html>", b'{"features": 1}', "https://elsewhere.example/"]
        async with scene.running():
            hole = await hole_when(scene, lambda one: one.filled_at)
            assert (hole.filled_by, hole.fault) == (service.url, "")
            await scene.until("every data id", lambda: scene.count() == {State.HELD: 31})
        assert set(scene.node.stored) == {f"de-dwd/synop/{number}" for number in range(31)}
        assert scene.node.stored["de-dwd/synop/7"].properties is not None
        assert {one["q"] for one in service.asked} == {'"cache/a/wis2"'}
        assert len(service.asked) == 5


async def test_a_failure_is_a_sentence_at_the_hole_and_other_addresses_are_not_asked(
    ledger: Ledger, tmp_path: Path, service: Collection
) -> None:
    with Mosquitto() as broker:
        scene = replayed_scene(ledger, broker, tmp_path, service)
        await lose_some(scene, broker, service, 3)
        service.failures = [503] * 10_000
        async with scene.running():
            hole = await hole_when(scene, lambda one: one.fault)
            assert (hole.filled_at, hole.fault) == (None, "127.0.0.1 answers with status 503")
        scene.source = replace(scene.source, may_ask_private=False)
        asked = len(service.asked)
        async with scene.running():
            hole = await hole_when(scene, lambda one: "private" in one.fault)
        assert hole.fault == "127.0.0.1 is in a private network, which this source may not ask"
        assert len(service.asked) == asked


async def test_what_is_older_than_a_day_is_not_asked_for(ledger: Ledger, tmp_path: Path, service: Collection) -> None:
    now = datetime.now(UTC)
    with Mosquitto() as broker:
        scene = replayed_scene(ledger, broker, tmp_path, service)
        with ledger.transaction() as tx:
            tx.wis2.holes.add(Hole("dwd", broker.url, now - timedelta(hours=30), now - timedelta(hours=29), "a"))
            tx.wis2.holes.add(Hole("dwd", broker.url, now - timedelta(hours=29), now - timedelta(hours=2), "b"))
        keep_notification(service, TOPIC, published(1, now - timedelta(hours=3)))
        async with scene.running():
            await hole_when(scene, lambda one: one.fault)
            await scene.until("the one that is left", lambda: scene.count() == {State.HELD: 1})
        with ledger.transaction(writes=False) as tx:
            later, earlier = tx.wis2.holes.of("dwd")
        assert (earlier.filled_at, later.filled_at) == (None, None)
        assert "nothing is left" in earlier.fault
        assert "replay services keep 24 hours" in later.fault
        assert len(service.asked) == 1


async def test_an_unknown_error_in_a_replay_is_counted_and_the_replay_goes_on(
    ledger: Ledger, tmp_path: Path, service: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed, enter = {"bridges.replay"}, tasks._enter

    def throw(handler: str, work: Callable[[], Any]) -> Any:
        if handler in armed:
            armed.remove(handler)
            raise ValueError(handler)
        return enter(handler, work)

    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.05)
    with Mosquitto() as broker:
        scene = replayed_scene(ledger, broker, tmp_path, service)
        await lose_some(scene, broker, service, 3)
        monkeypatch.setattr(tasks, "_enter", throw)
        async with scene.running():
            await hole_when(scene, lambda one: one.filled_at)
            await scene.until("every data id", lambda: scene.count() == {State.HELD: 4})
    assert armed == set()
    assert "bridges.replay" in {fault.handler for fault in FAULTS.all()}


async def test_answers_end_at_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = Web(allows_private=True)
    with replay_service() as service:
        service.failures = [b"x" * 1_000, b"x" * 1_001, "https://elsewhere.example/y", 404]
        monkeypatch.setattr(web, "MOST_BYTES", 1_000)
        assert len(await asking.get(service.url, {"q": "a"})) == 1_000
        for words in ("more than", "redirects to another address: https://elsewhere", "status 404"):
            with pytest.raises(Failure, match=words):
                await asking.get(service.url, {})
        assert service.asked[0] == {"q": "a"}
    with pytest.raises(Failure, match=r"127\.0\.0\.1 can't be asked"):
        await asking.get(service.url, {})
    with pytest.raises(Failure, match="no address"):
        await asking.get("https://nowhere.invalid", {})
    await asking.close()


@pytest.mark.all
async def test_what_a_short_queue_dropped_comes_by_the_replay(
    ledger: Ledger, tmp_path: Path, service: Collection
) -> None:
    service.most_items = 100
    with Mosquitto(queue=2_000) as broker:
        scene = replayed_scene(ledger, broker, tmp_path, service)
        async with scene.running():
            await scene.publish(broker, published(0))
            await scene.until("the first one", lambda: scene.count() == {State.HELD: 1})
        messages = [published(number) for number in range(1, 3_001)]
        for one in messages:
            keep_notification(service, TOPIC, one)
        await scene.publish(broker, *messages)
        async with scene.running():
            await scene.publish(broker, published(3_001))
            hole = await hole_when(scene, lambda one: one.filled_at)
            assert "messages waited at the broker" in hole.reason
            await scene.until("every data id", lambda: scene.count() == {State.HELD: 3_002})
        assert len(scene.node.stored) == 3_002
        assert len(service.asked) > 10, "pages of 100"
