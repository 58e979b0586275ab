"""The latency that a circuit gained: its sign, its unit, the products compared, and the cases without a figure."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from downburst.domain.events import PlanMade
from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.ordering import DemandOrder
from downburst.domain.plans import Candidate, Transport
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger
from downburst.ledger.repositories.audit import Changes
from downburst.sketches.sketch import LatencySketch
from unit.demand.world import FEED, TERMS, World

HOUR_MINUTES = 60


@pytest.fixture
async def world(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> World:
    """Twenty seconds into a train that rides a circuit."""
    world = await World(ledger, clock, tmp_path).open(TERMS)
    world.clock.advance(2 * 3_600)
    await world.stir()
    await world.after(20)
    return world


def measured(
    world: World,
    transport: Transport,
    values_ms: list[float],
    *,
    minutes_ago: int = 0,
    site: str = "unl.edu",
    feed: str = FEED,
    kind: LatencyKind = LatencyKind.DISTRIBUTION,
    bound_ms: float | None = 0.5,
) -> None:
    """Latencies as the latency service loads them."""
    sketch = LatencySketch()
    for value_ms in values_ms:
        sketch.add(value_ms, bound_ms)
    minute = to_us(world.clock.now()) // 60_000_000 - minutes_ago
    row = SketchRow(
        *(feed, site, transport, kind, minute, sketch.count),
        sum_ms=sketch.sum_ms,
        min_ms=sketch.min_ms,
        max_ms=sketch.max_ms,
        negative=sketch.negative,
        bound_ms=sketch.bound_ms,
        buckets=sketch.buckets,
    )
    with world.ledger.transaction() as tx:
        tx.measured.latency.add(row)


async def predicted(world: World, p50_ms: float) -> None:
    """A plan with this prediction for the routed path."""
    plan = world.plan()
    assert plan is not None
    candidate = Candidate(Transport.UNICAST, feasible=True, reason="", predicted_p50_ms=p50_ms)
    with world.ledger.transaction() as tx:
        kept = tx.planning.plans.append(replace(plan, version=0, candidates=(candidate,)))
    world.bus.publish(PlanMade(kept))
    await world.settle()


async def ended(world: World) -> DemandOrder:
    await world.silence()
    await world.after(3)
    (order,) = world.orders()
    assert order.step == "ended"
    return order


async def test_products_on_the_circuit_are_compared_with_those_on_the_routed_path(world: World) -> None:
    measured(world, Transport.DYNAMIC_CIRCUIT, [10.0] * 30 + [4_000.0])
    measured(world, Transport.UNICAST, [250.0] * 12 + [9_000.0])
    order = await ended(world)
    assert order.use is not None
    assert order.use.gained_ms == pytest.approx(240, rel=0.03), "milliseconds, positive for a gain, of medians"
    assert order.outcome.endswith(
        "; the median latency of 31 products was 10 ms, 245 ms less than that of 13 on the routed path in the same "
        "minutes"
    )


async def test_a_loss_is_negative_and_said(world: World) -> None:
    measured(world, Transport.DYNAMIC_CIRCUIT, [100.0] * 20)
    measured(world, Transport.UNICAST, [40.0] * 20)
    order = await ended(world)
    assert order.use is not None
    assert order.use.gained_ms == pytest.approx(-60, rel=0.05)
    assert ", 60 ms more than that of 20 on the routed path in the same minutes" in order.outcome


async def test_other_sites_feeds_kinds_and_transports_say_nothing(world: World) -> None:
    measured(world, Transport.DYNAMIC_CIRCUIT, [10.0] * 20)
    measured(world, Transport.UNICAST, [900.0] * 20, site="ttu.edu")
    measured(world, Transport.UNICAST, [900.0] * 20, feed="CONDUIT")
    measured(world, Transport.UNICAST, [900.0] * 20, kind=LatencyKind.END_TO_END)
    measured(world, Transport.STATIC_CIRCUIT, [900.0] * 20)
    measured(world, Transport.UNICAST, [900.0] * 20, minutes_ago=HOUR_MINUTES + 2)
    order = await ended(world)
    assert order.use is not None
    assert (order.use.gained_ms, "median" in order.outcome) == (None, False)


async def test_without_routed_products_in_its_minutes_the_hour_before_counts(world: World) -> None:
    await predicted(world, 7_000.0)
    measured(world, Transport.DYNAMIC_CIRCUIT, [10.0] * 20)
    measured(world, Transport.UNICAST, [500.0] * 9)
    measured(world, Transport.UNICAST, [60.0] * 40, minutes_ago=30)
    order = await ended(world)
    assert order.use is not None
    assert order.use.gained_ms == pytest.approx(50, rel=0.05)
    assert order.outcome.endswith("less than that of 40 on the routed path in the hour before")


async def test_without_any_routed_product_the_prediction_is_named(world: World) -> None:
    await predicted(world, 300.0)
    measured(world, Transport.DYNAMIC_CIRCUIT, [50.0] * 20)
    order = await ended(world)
    assert order.use is not None
    assert order.use.gained_ms == pytest.approx(250, rel=0.02)
    assert "less than predicted for the routed path of the feed, where none was measured" in order.outcome


@pytest.mark.parametrize(("value_ms", "bound_ms"), [(50.0, None), (50.0, 260.0), (-5.0, 1.0)])
async def test_a_prediction_is_no_measure_for_an_unsure_clock(
    world: World, value_ms: float, bound_ms: float | None
) -> None:
    await predicted(world, 300.0)
    measured(world, Transport.DYNAMIC_CIRCUIT, [value_ms] * 20, bound_ms=bound_ms)
    order = await ended(world)
    assert order.use is not None
    assert order.use.gained_ms is None


async def test_nine_products_on_the_circuit_have_no_telling_median(world: World) -> None:
    measured(world, Transport.DYNAMIC_CIRCUIT, [10.0] * 9)
    measured(world, Transport.UNICAST, [250.0] * 20)
    order = await ended(world)
    assert order.use is not None
    assert order.use.gained_ms is None


@pytest.mark.parametrize("seed", range(3))
async def test_the_gain_is_the_difference_of_medians(world: World, seed: int) -> None:
    print(f"seed {seed}")
    drawn = random.Random(seed)
    rode = sorted(drawn.lognormvariate(3, 1) for _ in range(101))
    routed = sorted(drawn.lognormvariate(5, 1) for _ in range(51))
    measured(world, Transport.DYNAMIC_CIRCUIT, rode)
    measured(world, Transport.UNICAST, routed)
    order = await ended(world)
    assert order.use is not None
    assert order.use.gained_ms == pytest.approx(routed[25] - rode[50], rel=0.05)


async def test_the_audit_has_the_gain(world: World) -> None:
    measured(world, Transport.DYNAMIC_CIRCUIT, [10.0] * 20)
    measured(world, Transport.UNICAST, [250.0] * 20)
    order = await ended(world)
    (entry, *_) = world.read(lambda tx: tx.access.audit.page(Changes(kind="circuit order")))
    assert order.use is not None
    assert entry.after is not None
    assert entry.after["use"]["gained_ms"] == order.use.gained_ms
    assert entry.after["outcome"].endswith("on the routed path in the same minutes")
