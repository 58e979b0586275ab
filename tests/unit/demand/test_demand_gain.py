"""The latency that a circuit gained: its sign, its unit, the products compared, and the cases without a figure."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from downburst.domain.events import FeedTraffic, PlanMade
from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.ordering import DemandOrder
from downburst.domain.plans import Candidate, Leg, Transport
from downburst.domain.receipts import Settled
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger
from downburst.ledger.repositories.audit import Changes
from downburst.sketches.sketch import LatencySketch
from unit.demand.world import FEED, TERMS, World

SETUP_S = 4.0


@pytest.fixture
async def world(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> World:
    """Circuits take some seconds to set up."""
    world = await World(ledger, clock, tmp_path).open(TERMS)
    world.clock.advance(2 * 3_600)
    world.setup_s = SETUP_S
    return world


def measured(
    world: World,
    values_ms: list[float],
    *,
    minutes_ago: int = 0,
    bound_ms: float | None = 0.5,
    **fields: object,
) -> None:
    """Latencies as the latency service loads them: copies on circuits are unicast, too."""
    sketch = LatencySketch()
    for value_ms in values_ms:
        sketch.add(value_ms, bound_ms)
    minute = to_us(world.clock.now()) // 60_000_000 - minutes_ago
    row = SketchRow(
        *(FEED, "unl.edu", Transport.UNICAST, LatencyKind.DISTRIBUTION, minute, sketch.count),
        sum_ms=sketch.sum_ms,
        min_ms=sketch.min_ms,
        max_ms=sketch.max_ms,
        negative=sketch.negative,
        bound_ms=sketch.bound_ms,
        buckets=sketch.buckets,
    )
    with world.ledger.transaction() as tx:
        tx.measured.latency.add(replace(row, **fields))  # type: ignore[arg-type]


async def train(
    world: World,
    *,
    setup: list[float],
    rode: list[float],
    first: list[float] | None = None,
    bound_ms: float | None = 0.5,
) -> DemandOrder:
    """A train with these latencies, in milliseconds: during the set-up, on the circuit, and at its first use."""
    await world.stir()
    if world.setup_s:
        await world.after(SETUP_S - 1)
        measured(world, setup)
        await world.after(2)
    assert world.steps()[-1] == "up"
    measured(world, first or [])
    await settled(world)
    measured(world, rode, bound_ms=bound_ms)
    await world.after(5)
    return await ended(world)


async def settled(world: World, *, head: int = 100, position: int = 100) -> None:
    """The feed has this head after it was moved, and the site this position."""
    world.clock.advance(2)
    feed = FeedTraffic(FEED, 1, 1, (), head, "7")
    world.bus.publish(world.traffic(feeds=(feed,)))
    with world.ledger.transaction() as tx:
        tx.measured.settled.advance(Settled(FEED, "7", "unl.edu", position), at=world.clock.now())
    await world.settle()
    await world.after(1)


async def ended(world: World) -> DemandOrder:
    await world.silence()
    measured(world, [3_000.0] * 99)
    await world.after(3)
    order = world.orders()[-1]
    assert (order.step, order.use is not None) == ("ended", True)
    return order


def gained_ms(order: DemandOrder) -> float | None:
    assert order.use is not None
    return order.use.gained_ms


async def predicted(world: World, p50_ms: float) -> None:
    """A plan with this prediction for the routed path."""
    plan = world.plan()
    assert plan is not None
    candidate = Candidate(Transport.UNICAST, feasible=True, reason="", predicted_p50_ms=p50_ms)
    with world.ledger.transaction() as tx:
        kept = tx.planning.plans.append(replace(plan, version=0, candidates=(candidate,)))
    world.bus.publish(PlanMade(kept))
    await world.settle()


async def test_products_on_the_circuit_are_compared_with_those_of_the_set_up(world: World) -> None:
    measured(world, [8.0] * 50)
    order = await train(world, setup=[250.0] * 12 + [900.0], rode=[10.0] * 30 + [4_000.0], first=[777.0] * 99)
    assert gained_ms(order) == pytest.approx(240, rel=0.03), "milliseconds, positive for a gain, of medians"
    assert order.outcome.endswith(
        "; the median latency of 31 products was 9.98 ms, 245 ms less than that of 13 on the routed path during the "
        "set-up"
    )


async def test_a_loss_is_negative_and_said(world: World) -> None:
    order = await train(world, setup=[40.0] * 20, rode=[100.0] * 20)
    assert gained_ms(order) == pytest.approx(-60, rel=0.05)
    assert " ms more than that of 20 on the routed path during the set-up" in order.outcome


async def test_other_sites_feeds_kinds_and_transports_say_nothing(world: World) -> None:
    for other in ({"site": "ttu.edu"}, {"feed": "CONDUIT"}, {"kind": LatencyKind.END_TO_END}, {"minutes_ago": 70}):
        measured(world, [900.0] * 20, **other)
    measured(world, [900.0] * 20, transport=Transport.MULTICAST, minutes_ago=5)
    order = await train(world, setup=[], rode=[10.0] * 20)
    assert (gained_ms(order), "median" in order.outcome) == (None, False)


async def test_without_products_in_the_set_up_the_hour_before_counts(world: World) -> None:
    await predicted(world, 7_000.0)
    measured(world, [60.0] * 40, minutes_ago=30)
    order = await train(world, setup=[500.0] * 9, rode=[10.0] * 20)
    assert gained_ms(order) == pytest.approx(50, rel=0.05)
    assert order.outcome.endswith("less than that of 40 on the routed path in the hour before")


async def test_minutes_with_an_order_or_a_reserved_circuit_are_no_routed_path(world: World) -> None:
    await train(world, setup=[], rode=[10.0] * 20)
    await world.after(120)
    second = await train(world, setup=[], rode=[10.0] * 20)
    assert gained_ms(second) is None, "the products of the first train rode a circuit"
    plan = world.plan()
    assert plan is not None
    fixed = replace(plan, version=0, legs=(Leg(1, Transport.STATIC_CIRCUIT, ("unl.edu",)),), figures={})
    with world.ledger.transaction() as tx:
        tx.planning.plans.append(fixed)
        tx.planning.plans.append(plan)
    await world.after(120)
    measured(world, [60.0] * 40, minutes_ago=1)
    assert gained_ms(await train(world, setup=[], rode=[10.0] * 20)) is None


async def test_without_any_routed_product_the_prediction_is_named(world: World) -> None:
    world.setup_s = 0
    await predicted(world, 300.0)
    order = await train(world, setup=[], rode=[50.0] * 20)
    assert gained_ms(order) == pytest.approx(250, rel=0.02)
    assert "less than predicted for the routed path of the feed, which no product took" in order.outcome


@pytest.mark.parametrize(("value_ms", "bound_ms"), [(50.0, None), (50.0, 260.0), (-5.0, 1.0)])
async def test_a_prediction_is_no_measure_for_an_unsure_clock(
    world: World, value_ms: float, bound_ms: float | None
) -> None:
    world.setup_s = 0
    await predicted(world, 300.0)
    assert gained_ms(await train(world, setup=[], rode=[value_ms] * 20, bound_ms=bound_ms)) is None


async def test_products_on_the_circuit_count_once_the_routed_path_is_empty(world: World) -> None:
    await world.stir()
    measured(world, [200.0] * 20)
    await world.after(SETUP_S + 3)
    await settled(world, head=100, position=80)
    measured(world, [5_000.0] * 99)
    await settled(world, head=300, position=110)
    measured(world, [10.0] * 20)
    order = await ended(world)
    assert gained_ms(order) == pytest.approx(190, rel=0.05)
    assert "of 20 products" in order.outcome


async def test_a_path_that_is_too_slow_for_the_set_up_is_not_judged_by_its_fastest_products(world: World) -> None:
    measured(world, [2_500.0] * 30, minutes_ago=10)
    order = await train(world, setup=[400.0 * number for number in range(1, 11)], rode=[10.0] * 20)
    assert gained_ms(order) == pytest.approx(2_490, rel=0.05)
    assert order.outcome.endswith("on the routed path in the hour before")


async def test_the_fastest_products_of_a_slow_path_give_the_least_gain(world: World) -> None:
    await predicted(world, 1.0)
    order = await train(world, setup=[400.0 * number for number in range(1, 11)], rode=[10.0] * 20)
    assert gained_ms(order) == pytest.approx(1_990, rel=0.05)
    assert "less than that of the fastest 10 on the routed path during the set-up" in order.outcome
    await world.after(120)
    order = await train(world, setup=[400.0 * number for number in range(1, 11)], rode=[2_500.0] * 20)
    assert gained_ms(order) is None, "slower ones were under way"


async def test_a_prediction_says_nothing_about_a_train_with_products_on_the_routed_path(world: World) -> None:
    await predicted(world, 1.0)
    assert gained_ms(await train(world, setup=[3_000.0] * 9, rode=[10.0] * 20)) is None


async def test_nine_products_on_the_circuit_have_no_telling_median(world: World) -> None:
    assert gained_ms(await train(world, setup=[250.0] * 20, rode=[10.0] * 9)) is None


async def test_a_train_that_comes_back_before_the_cancel_counts_as_a_whole(world: World) -> None:
    await world.stir()
    measured(world, [200.0] * 20)
    await world.after(SETUP_S + 3)
    await settled(world)
    measured(world, [10.0] * 6)
    await world.silence()
    await world.stir()
    assert world.steps() == ["up"]
    measured(world, [10.0] * 6)
    await world.after(5)
    order = await ended(world)
    assert gained_ms(order) == pytest.approx(190, rel=0.05)
    assert "of 12 products" in order.outcome


async def test_the_gain_of_a_failed_order_stands_behind_its_reason(world: World) -> None:
    await world.stir()
    measured(world, [200.0] * 20)
    await world.after(SETUP_S + 3)
    await settled(world)
    measured(world, [10.0] * 20)
    (circuit,) = world.circuits()
    await world.stage.told(circuit, "down")
    await world.after(3)
    order = world.orders()[0]
    assert order.step == "failed"
    assert order.outcome.startswith("the circuit died: it is down: nothing came back for 1 s; the median latency")
    assert gained_ms(order) == pytest.approx(190, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
async def test_the_gain_is_the_difference_of_medians(world: World, seed: int) -> None:
    print(f"seed {seed}")
    drawn = random.Random(seed)
    rode = sorted(drawn.lognormvariate(3, 1) for _ in range(101))
    routed = sorted(drawn.lognormvariate(5, 1) for _ in range(51))
    order = await train(world, setup=routed, rode=rode)
    assert gained_ms(order) == pytest.approx(routed[25] - rode[50], rel=0.05)


async def test_the_audit_has_the_gain(world: World) -> None:
    order = await train(world, setup=[250.0] * 20, rode=[10.0] * 20)
    (entry, *_) = world.read(lambda tx: tx.access.audit.page(Changes(kind="circuit order")))
    assert entry.after is not None
    assert entry.after["use"]["gained_ms"] == gained_ms(order)
    assert entry.after["outcome"].endswith("on the routed path during the set-up")
