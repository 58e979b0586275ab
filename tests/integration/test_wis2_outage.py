"""Notifications while the hub is away, at brokers with short queues: all of them, or a hole that is reported."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.bridges import State
from downburst.ledger import Ledger
from integration.test_wis2_source import Node, Scene
from kit.wis2.mosquitto import Mosquitto
from unit.bridges.test_intake import message

pytestmark = pytest.mark.all


def now(number: int) -> dict[str, Any]:
    """A notification that is published now."""
    return message(
        number, of=number, pubtime=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


async def test_what_a_short_queue_dropped_is_a_hole_with_its_times(ledger: Ledger, tmp_path: Path) -> None:
    with Mosquitto(queue=2_000) as broker:
        scene = Scene(ledger, Node(), (broker,), tmp_path / "spool")
        async with scene.running():
            await scene.publish(broker, now(0))
            await scene.until("the first one", lambda: scene.count() == {State.HELD: 1})
        began_at = datetime.now(UTC)
        await scene.publish(broker, *(now(number) for number in range(1, 3_001)))
        async with scene.running():
            await scene.publish(broker, now(3_001))
            await scene.until("the last one", lambda: "de-dwd/synop/3001" in scene.node.stored)
            await scene.until("their ends", lambda: State.COMING not in scene.count())
            (hole,) = await scene.holes(1)
        assert len(scene.node.stored) < 3_002, "the broker dropped some"
        assert "messages waited at the broker" in hole.reason
        assert (hole.filled_at, began_at <= hole.from_at <= hole.to_at) == (None, True)


async def test_a_second_broker_with_room_brings_every_data_id(ledger: Ledger, tmp_path: Path) -> None:
    with Mosquitto(queue=2_000) as short, Mosquitto(queue=10_000) as long:
        scene = Scene(ledger, Node(), (short, long), tmp_path / "spool")
        async with scene.running():
            await scene.publish(short, now(0))
            await scene.until("the first one", lambda: scene.count() == {State.HELD: 1})
        messages = [now(number) for number in range(1, 3_001)]
        await asyncio.gather(scene.publish(short, *messages), scene.publish(long, *messages))
        async with scene.running():
            await scene.until("every data id", lambda: len(scene.node.stored) == 3_001)
