"""Many notifications at a time: recorded or held back by the broker, and none acknowledged and lost."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from downburst.domain.bridges import State
from downburst.ledger import Ledger
from integration.test_wis2_source import Node, Scene
from kit.wis2.mosquitto import Mosquitto
from unit.bridges.test_intake import message


@pytest.mark.parametrize("count", [1_500, pytest.param(100_000, marks=pytest.mark.nightly)])
async def test_a_flood_is_recorded_or_held_back(ledger: Ledger, tmp_path: Path, count: int) -> None:
    """The larger one is 10,000 a second for 10 s, offered as fast as the broker takes them."""
    messages = [message(number, of=number) for number in range(count)]
    with Mosquitto("persistence false", queue=0) as broker:
        scene = Scene(ledger, Node(), (broker,), tmp_path / "spool")
        # The products wait, as their centre has no bytes left: this is about notifications.
        scene.source = replace(scene.source, bytes_per_day=1)
        async with scene.running():
            offered = asyncio.create_task(scene.publish(broker, *messages))
            await scene.until("some of them", lambda: scene.count().get(State.WAITING, 0) > count // 10, 120)
        await offered
        recorded = scene.count()[State.WAITING]
        assert recorded < count, "the source ended amid the flood"
        async with scene.running():
            await scene.until("all", lambda: scene.count() == {State.WAITING: count}, 120)
    assert scene.node.attempts == 0


async def test_a_broker_killed_amid_a_flow_brings_every_data_id(ledger: Ledger, tmp_path: Path) -> None:
    """By MQTT 3.1.1, whose sessions mosquitto restores after `kill -9`."""
    with Mosquitto() as broker:
        scene = Scene(ledger, Node(), (broker,), tmp_path / "spool", mqtt=311)
        async with scene.running():
            await scene.publish(broker, *(message(number, of=number) for number in range(200)))
            await asyncio.to_thread(broker.kill)
            await asyncio.to_thread(broker.start)
            await scene.publish(broker, *(message(number, of=number) for number in range(150, 400)))
            await scene.until("every data id", lambda: len(scene.node.stored) == 400)
            await scene.until("their ends", lambda: scene.count() == {State.HELD: 400})


async def test_ends_are_recorded_in_groups(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes, write = list[object](), ledger.write

    async def counted(work, **more):  # type: ignore[no-untyped-def]
        writes.append(work)
        return await write(work, **more)

    with Mosquitto("persistence false", queue=0) as broker:
        scene = Scene(ledger, Node(), (broker,), tmp_path / "spool")
        async with scene.running():
            monkeypatch.setattr(ledger, "write", counted)
            await scene.publish(broker, *(message(number, of=number) for number in range(600)))
            await scene.until("their ends", lambda: scene.count() == {State.HELD: 600})
    assert len(writes) < 200, "a transaction for each would be 1,200"
