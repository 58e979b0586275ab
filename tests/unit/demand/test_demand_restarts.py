"""A scheduler that starts again remembers habits and pauses, and goes on in the middle of a train."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from downburst.domain.circuits import CircuitProblem
from downburst.domain.events import NodeChanged
from downburst.domain.ordering import DemandOrder, OrderStep
from downburst.domain.ordering.signs import SilencesWatched
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from unit.demand.world import FEED, TERMS, World

TRAIN_S, SILENCE_S = 25.0, 35.0


@pytest.fixture
async def world(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> World:
    return await World(ledger, clock, tmp_path).open(TERMS)


async def minutes(world: World, count: int) -> None:
    """Trains each minute."""
    for _ in range(count):
        await world.stir()
        await world.after(TRAIN_S)
        await world.silence()
        await world.after(SILENCE_S)


async def refused(world: World, count: int) -> DemandOrder:
    """The last of some refused orders of one train."""
    await world.stage.reserve(rate=980)
    await world.stir()
    while len(world.orders()) < count:
        await world.after(1)
    assert set(world.steps()) == {"refused"}
    return world.orders()[-1]


async def test_the_pause_after_refusals_goes_on_over_a_restart(world: World) -> None:
    last = await refused(world, 5)
    world = await world.again()
    await world.stir()
    while len(world.orders()) == 5:
        await world.after(1)
    waited_s = (world.orders()[-1].times.ordered_at - last.times.ordered_at).total_seconds()
    assert 0.5 * 5 * 2**4 <= waited_s <= 5 * 2**4 + 2


async def test_restarts_do_not_shorten_the_pauses(world: World) -> None:
    await refused(world, 1)
    for _ in range(100):
        world = await world.again()
        await world.stir()
        await world.after(1)
    times = [order.times.ordered_at for order in world.orders()]
    gaps_s = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    assert 2 <= len(gaps_s) <= 6
    assert gaps_s[-1] > gaps_s[0]


async def test_failures_count_until_an_order_ends_as_it_should(world: World) -> None:
    world.stage.node.refuses = {1: CircuitProblem("eth0 is gone")}
    await world.stir()
    await world.after(1)
    assert world.steps() == ["failed"]
    world = await world.again()
    await world.stir()
    assert world.steps() == ["failed"], "it waits"
    await world.after(5)
    assert world.steps() == ["failed", "up"]
    await world.silence()
    await world.after(3)
    world = await world.again()
    await world.stir()
    assert world.steps() == ["failed", "ended", "up"], "it does not wait"


async def test_a_habit_is_known_after_a_restart(world: World) -> None:
    world.choose(replace(TERMS, ahead=True))
    await minutes(world, 8)
    trains = [order.times.train_at for order in world.orders()]
    assert None not in trains[:-1], "of orders ahead as well"
    await world.stir()
    await world.after(TRAIN_S)
    await world.silence()
    await world.after(SILENCE_S / 2)
    assert {order.step for order in world.orders()} == {OrderStep.ENDED}
    count = len(world.orders())
    world = await (await world.again()).again()
    await world.after(SILENCE_S / 2)
    (ahead,) = world.orders()[count:]
    assert (ahead.step, ahead.reason.endswith("by the feed's habit")) == (OrderStep.UP, True)


async def test_the_restart_itself_is_no_start_of_a_train(world: World) -> None:
    world.choose(replace(TERMS, ahead=True))
    await minutes(world, 6)
    for _ in range(3):
        await world.stir()
        await world.after(10)
        world = await world.again()
        await world.stir()
        await world.after(TRAIN_S - 10)
        await world.silence()
        await world.after(SILENCE_S)
    starts_s = world.loop._trains[FEED].habit._starts_s
    assert all((later - earlier) % 60 == pytest.approx(0, abs=0.5) for earlier, later in pairwise(starts_s))


async def test_a_restart_in_mid_train_asks_the_node_for_the_next_product_and_keeps_the_circuit(world: World) -> None:
    await world.stir()
    world = await world.again()
    assert world.watched() == [SilencesWatched(()), SilencesWatched(((FEED, 5_000_000),))]
    await world.after(1)
    await world.stir()
    await world.after(60)
    assert (world.steps(), list(world.riders())) == (["up"], ["unl.edu"])
    await world.silence()
    await world.after(2)
    assert (world.steps(), world.circuits()) == (["ended"], [])


async def test_a_train_that_ended_during_a_restart_costs_the_hold_time(world: World) -> None:
    await world.stir()
    world = await world.again()
    await world.after(4)
    assert world.steps() == ["up"]
    await world.after(4)
    assert (world.steps(), world.circuits()) == (["ended"], [])


async def test_a_node_that_starts_again_in_mid_train_is_asked_as_well(world: World) -> None:
    await world.stir()
    world.bus.publish(NodeChanged(world.clock.now(), running=True, restarts=1))
    await world.settle()
    assert world.watched()[-2:] == [SilencesWatched(()), SilencesWatched(((FEED, 5_000_000),))]
    await world.after(30)
    assert world.steps() == ["ended"], "no product has come since"
