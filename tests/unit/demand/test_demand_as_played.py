"""The live loop in virtual time makes the reservations that the models predict for the same arrivals."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from downburst.domain.ordering import OrderStep
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.demand.playing import reservations
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.transports import releases
from unit.demand.world import TERMS, World
from unit.scheduler.feeds import ngrid_hour, steady


def part(arrivals: Arrivals, span_s: float) -> Arrivals:
    """The first seconds of them."""
    inside = arrivals.at_s < span_s
    return Arrivals(arrivals.at_s[inside], arrivals.size_bytes[inside], span_s)


def trains(seed: int, *, ahead: bool = False) -> Arrivals:
    """Trains of a few seconds each minute; some are missing, and their starts vary."""
    drawn, at_s = random.Random(seed), []
    for minute in range(12):
        if ahead and drawn.random() < 0.15:
            continue
        start_s = minute * 60 + drawn.uniform(0, 3)
        at_s += [start_s + offset for offset in np.arange(0, drawn.uniform(3, 20), 0.5)]
    return Arrivals(np.array(at_s), np.full(len(at_s), 1e5), 720.0)


async def played(world: World, arrivals: Arrivals, terms: DemandTerms) -> tuple[int, float]:
    """Plays the node's signs at their moments; gives the releases, and the share of time released."""
    hold_s, span_s = max(terms.hold_s, terms.setup_s), arrivals.span_s
    long = np.flatnonzero(np.diff(arrivals.at_s) > hold_s)
    signs = [(float(arrivals.at_s[0]), True)]
    for index in long:
        signs += [(float(arrivals.at_s[index]) + hold_s, False), (float(arrivals.at_s[index + 1]), True)]
    signs.append((float(arrivals.at_s[-1]) + hold_s, False))
    began_s = world.clock.monotonic_s()
    for at_s, is_stir in signs:
        await until(world, began_s + at_s, step_s=0.25 if terms.ahead else None)
        await (world.stir() if is_stir else world.silence(hold_s))
        await applied(world)
    await until(world, began_s + max(span_s, signs[-1][0]) + 0.5, step_s=0.25 if terms.ahead else None)
    await applied(world)
    began = FakeClock().now()
    times = [((one.times.ordered_at - began).total_seconds(), one.times.ended_at) for one in world.orders()]
    ended_s = [span_s if end is None else min((end - began).total_seconds(), span_s) for _, end in times]
    ordered_s = [start for start, _ in times]
    released_s = sum(later - end for later, end in zip(ordered_s[1:], ended_s, strict=False))
    return len(times) - 1, released_s / span_s


async def until(world: World, at_s: float, *, step_s: float | None) -> None:
    """Moves the clock there; circuits come up at their moments on the way."""
    while (left_s := at_s - world.clock.monotonic_s()) > 1e-6:
        up_s = [one.begin.timestamp() + world.setup_s - world.clock.now().timestamp() for one in world._coming()]
        steps_s = [left_s, 20.0, *(one for one in up_s if one > 1e-6), *([step_s] if step_s else [])]
        world.clock.advance(max(min(steps_s), 1e-6))
        await world.settle()
        await applied(world)


async def applied(world: World) -> None:
    """The node works by a new plan at once."""
    if any(order.step is OrderStep.RELEASING for order in world.read(lambda tx: tx.planning.orders.open())):
        world.bus.publish(world.traffic(ahead_s=0.5))
        await world.settle()


async def compared(world: World, arrivals: Arrivals, terms: DemandTerms) -> tuple[int, float]:
    """Releases and the share of time released, which equal those of the models."""
    world.setup_s = terms.setup_s
    count, share = await played(world, arrivals, terms)
    expected = reservations(arrivals, terms)
    assert count == pytest.approx(expected.releases, rel=0.02)
    assert share == pytest.approx(expected.released_share, rel=0.02, abs=1e-3)
    if not terms.ahead:
        closed = releases(arrivals, setup_s=terms.setup_s, hold_s=terms.hold_s)
        assert (count, share) == pytest.approx((closed.releases, closed.share_of_time), rel=0.02, abs=1e-3)
    return count, share


async def opened(ledger: Ledger, clock: FakeClock, directory: Path, terms: DemandTerms) -> World:
    return await World(ledger, clock, directory).open(terms)


@pytest.mark.parametrize("hold_s", [pytest.param(1.0, marks=pytest.mark.all), 10.0, 30.0])
async def test_minutes_of_ngrid_give_back_as_predicted(
    ledger: Ledger, clock: FakeClock, tmp_path: Path, hold_s: float
) -> None:
    terms = replace(TERMS, hold_s=hold_s)
    arrivals = part(ngrid_hour(), 240.0 if hold_s == 1.0 else 3600.0)
    await compared(await opened(ledger, clock, tmp_path, terms), arrivals, terms)


@pytest.mark.nightly
@pytest.mark.parametrize(("hold_s", "count", "share"), [(1.0, 1005, 0.241), (10.0, 7, 0.007), (30.0, 0, 0.0)])
async def test_the_hour_of_ngrid_gives_back_as_predicted(
    ledger: Ledger, clock: FakeClock, tmp_path: Path, hold_s: float, count: int, share: float
) -> None:
    terms = replace(TERMS, hold_s=hold_s)
    world = await opened(ledger, clock, tmp_path, terms)
    found, released = await compared(world, ngrid_hour(), terms)
    print(f"hold {hold_s:g} s: {found} releases, {released:.2%} of the time given back")
    assert found == pytest.approx(count, rel=0.02)
    assert released == pytest.approx(share, rel=0.02, abs=5e-4)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.all) for seed in (1, 2))])
@pytest.mark.parametrize("ahead", [False, True])
async def test_synthetic_trains_are_served_as_predicted(
    ledger: Ledger, clock: FakeClock, tmp_path: Path, seed: int, ahead: bool
) -> None:
    print(f"seed {seed}")
    terms = replace(TERMS, hold_s=3.0, ahead=ahead)
    await compared(await opened(ledger, clock, tmp_path, terms), trains(seed, ahead=ahead), terms)


async def test_a_steady_feed_keeps_its_circuit(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> None:
    await compared(await opened(ledger, clock, tmp_path, TERMS), steady(products=200), TERMS)
