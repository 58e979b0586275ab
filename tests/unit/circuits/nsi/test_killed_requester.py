"""The requester's process ends at any step; at the end the provider has exactly the reservations that it knows."""

import os
import random
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from downburst.domain.ordering.providers import Dialect
from downburst_circuits.nsi.order import Standing, cancelled, switched, verdict
from downburst_circuits.nsi.record import Goal, Life
from kit.nsi.scene import Scene

Story = Callable[[Scene], Awaitable[None]]


async def ordered_changed_cancelled(scene: Scene) -> None:
    """A whole life; each wish is repeated if the process ended before it was stored."""
    await scene.begin()
    await scene.run(lambda: verdict(scene.order, scene.now_us()).standing is Standing.ACTIVE)
    await scene.change(scene.changed_to(20), again=lambda order: not _is_changing(order.serving.ask, order.replacing))
    if scene.provider.dialect is Dialect.NONE:
        await scene.run(lambda: verdict(scene.order, scene.now_us()).standing is Standing.REPLACED)
        await scene.change(switched, again=lambda order: order.replacing is not None)
    await scene.at_rest()
    assert scene.granted_mbps() == [20]
    assert scene.known() == scene.existing()
    await scene.change(cancelled, again=lambda order: order.serving.goal is Goal.SERVE)
    await scene.run(lambda: verdict(scene.order, scene.now_us()).standing is Standing.ENDED)
    assert scene.existing() == set()


def _is_changing(*pending: object) -> bool:
    return any(one is not None for one in pending)


async def steps_of(scene: Scene) -> int:
    await ordered_changed_cancelled(scene)
    return scene.trial.steps


KINDS = pytest.mark.parametrize(
    ("kind", "dialect"), [("supa", Dialect.P2PS), ("supa", Dialect.NONE), ("opennsa", Dialect.NONE)]
)


@KINDS
async def test_killed_once_at_every_step(kind: str, dialect: Dialect) -> None:
    steps = await steps_of(Scene(kind, dialect))
    assert steps > 30
    for step in range(1, steps + 1):
        scene = Scene(kind, dialect, frozenset({step}))
        await ordered_changed_cancelled(scene)
        reserves = scene.machine.requests.count("reserve")
        assert reserves == 2, f"killed at step {step}: {scene.machine.requests}"


@KINDS
async def test_killed_many_times_on_a_bad_way(kind: str, dialect: Dialect) -> None:
    first = int(os.environ.get("DOWNBURST_SEED", "1"))
    for seed in range(first, first + 25):
        print(f"replay: DOWNBURST_SEED={seed} pytest tests/unit/circuits/nsi/test_killed_requester.py")
        chance = random.Random(seed)
        scene = Scene(kind, dialect, frozenset(chance.sample(range(1, 400), 12)))
        scene.machine.hold_us = 10**10
        fates = ["arrives"] * 7 + ["lost", "answer lost", "late"]
        scene.way.fate = partial(chance.choice, fates)
        await scene.begin()
        await scene.settle(chance.uniform(0, 300))
        scene.way.deliver_late()
        if chance.random() < 0.3:
            await scene.change(cancelled, again=lambda order: order.serving.goal is Goal.SERVE)
        await scene.settle(300)
        scene.way.fate = lambda: "arrives"
        scene.way.deliver_late()
        await scene.settle(900)
        wanted = {one.connection_id for one in scene.order.reservations if one.goal is Goal.SERVE}
        assert scene.known() == scene.existing() == wanted - {None}, f"seed {seed}: {scene.order}"
        if wanted:
            assert scene.order.serving.life is Life.PROVISIONED
