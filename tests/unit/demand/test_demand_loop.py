"""The acting loop: orders for trains, the way back, refusals, budgets, and circuits that come late, short or die."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from downburst.domain.circuits import Circuit, CircuitAnswer, CircuitProblem, CircuitUse
from downburst.domain.events import LegTraffic
from downburst.domain.ordering.signs import SilencesWatched
from downburst.domain.plans import Transport
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.supervision import FAULTS
from kit.circuits import M
from unit.demand.world import FEED, OFFER, TERMS, World, offer


@pytest.fixture
async def world(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> World:
    return await World(ledger, clock, tmp_path).open(TERMS)


async def test_a_train_rides_a_circuit_that_is_given_back_after_the_hold_time(world: World) -> None:
    assert world.watched()[-1] == SilencesWatched(((FEED, 5_000_000),))
    await world.stir()
    (order,) = world.orders()
    (circuit,) = world.circuits()
    assert (order.step, order.circuit, circuit.request.request_id) == ("up", circuit.number, "on-demand-1")
    assert world.riders() == {"unl.edu": circuit.number}
    plan = world.plan()
    assert plan is not None
    assert plan.transport is Transport.DYNAMIC_CIRCUIT
    assert plan.reason == f"dynamic-circuit: onto circuits: unl.edu by order 1 and circuit {circuit.number} (active)"

    await world.after(20)
    use = CircuitUse(circuit.number, None, 12_500_000, 0)
    leg = LegTraffic(2, FEED, 0, 0, 7, 0, 1, 0, Transport.DYNAMIC_CIRCUIT)
    world.bus.publish(world.traffic(circuits=(use,), legs=(leg,)))
    await world.silence()
    assert world.riders() == {}
    assert (world.steps(), len(world.circuits())) == (["releasing"], 1), "the node still has the old plan"
    await world.after(1)
    (order,) = world.orders()
    assert (order.step, world.circuits()) == ("ended", [])
    assert order.use is not None
    assert (order.use.products, order.use.gained_ms) == (7, None)
    assert order.use.used_share == pytest.approx(100 / (50 * 21))
    assert order.outcome == "up after 0 s and reserved for 21 s; carried 7 products and used 9.5% of 50 Mb/s"


async def test_the_node_that_says_nothing_is_not_waited_for_longer_than_two_seconds(world: World) -> None:
    await world.stir()
    await world.silence()
    world.clock.advance(1.9)
    await world.settle()
    assert world.steps() == ["releasing"]
    world.clock.advance(0.2)
    await world.settle()
    assert world.steps() == ["ended"]


async def test_a_train_that_comes_back_before_the_circuit_is_cancelled_keeps_it(world: World) -> None:
    await world.stir()
    await world.silence()
    await world.stir()
    assert (world.steps(), list(world.riders())) == (["up"], ["unl.edu"])


async def test_the_window_is_extended_while_the_train_lasts(world: World) -> None:
    await world.stir()
    first = world.orders()[0].times.until
    await world.after(300)
    (order,) = world.orders()
    (circuit,) = world.circuits()
    assert order.times.until > first + timedelta(seconds=200)
    assert circuit.end == order.times.until


async def test_a_window_that_can_not_be_extended_is_left_before_its_end(world: World) -> None:
    with world.ledger.transaction() as tx:
        tx.planning.offers.put(offer(circuit_hours=80 / 3600))
    await world.stir()
    until = world.orders()[0].times.until
    await world.after((until - world.clock.now()).total_seconds() - 4)
    assert world.steps() == ["up"]
    await world.after(3)
    (order,) = world.orders()
    assert (order.step, world.riders(), world.circuits()) == ("ended", {}, [])
    assert world.faults() == [
        "no circuit is ordered under the offer campus: 0 of 0.0222222 circuit-hours of the day are used or promised; "
        "feeds stay on the routed path"
    ]


async def test_a_spent_budget_is_said_once_and_nothing_is_ordered(world: World) -> None:
    with world.ledger.transaction() as tx:
        tx.planning.offers.put(offer(orders=1))
    for _ in range(4):
        await world.stir()
        await world.after(8)
        await world.silence()
        await world.after(8)
    assert world.steps() == ["ended"]
    assert world.faults() == [
        "no circuit is ordered under the offer campus: 1 of 1 orders of the day are used; "
        "feeds stay on the routed path"
    ]
    world.clock.advance(86_400)
    await world.stir()
    assert world.steps() == ["ended", "up"], "another day"


async def test_a_dry_run_stores_the_order_of_each_train_and_sends_nothing(
    ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    world = await World(ledger, clock, tmp_path, dry_run=True).open(TERMS)
    for _ in range(2):
        await world.stir()
        await world.after(8)
        await world.silence()
        await world.after(8)
    assert (world.steps(), world.circuits()) == (["would-order"] * 2, [])
    assert world.orders()[0].outcome == "dry run: nothing was sent"


async def test_after_a_refusal_the_feed_stays_and_orders_wait_longer_each_time(world: World) -> None:
    await world.stage.reserve(rate=980)
    await world.stir()
    (order,) = world.orders()
    assert order.step == "refused"
    assert order.outcome.startswith("port hub-eth0 has 20 Mb/s of 1 Gb/s free to be sent from")
    await world.after(120)
    times = [one.times.ordered_at for one in world.orders()]
    gaps_s = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    assert 3 <= len(gaps_s) <= 6
    assert gaps_s[-1] > 2 * gaps_s[0]
    assert world.riders() == {}


async def test_a_circuit_that_is_not_made_fails_with_the_sentence_of_the_node(world: World) -> None:
    world.stage.node.refuses[1] = CircuitProblem("eth0 is gone")
    await world.stir()
    await world.after(3)
    assert world.orders()[0].step == "failed"
    assert world.orders()[0].outcome == "the circuit was not made: eth0 is gone"
    assert all(one.number != 1 for one in world.circuits())


async def test_a_late_circuit_is_given_up(world: World) -> None:
    world.setup_s = 60
    await world.stir()
    await world.after(4)
    assert world.steps() == ["ordered"]
    await world.after(3)
    (order,) = world.orders()
    assert order.outcome.startswith("the circuit is late: it was not up after 5 s")
    world.setup_s = 0
    await world.settle()
    assert (world.orders()[0].step, world.circuits()) == ("failed", [])


async def test_a_short_circuit_is_given_up(world: World) -> None:
    world.stage.node.carries_bps["unl.edu"] = 30 * M
    await world.stir()
    await world.after(2)
    assert world.orders()[0].step == "failed"
    assert world.orders()[0].outcome.startswith("the circuit is short: ")
    assert world.riders() == {}


async def test_a_dying_circuit_moves_the_feed_back_at_once(world: World) -> None:
    await world.stir()
    (circuit,) = world.circuits()
    await world.stage.told(circuit, "down")
    await world.settle()
    assert world.riders() == {}
    await world.after(2)
    assert world.orders()[0].step == "failed"
    assert world.orders()[0].outcome == "the circuit died: it is down: nothing came back for 1 s"


async def test_a_train_that_is_over_before_the_circuit_is_up_ends_the_order(world: World) -> None:
    world.setup_s = 4
    await world.stir()
    await world.silence()
    world.setup_s = 0
    await world.settle()
    (order,) = world.orders()
    assert order.step == "ended"
    assert order.outcome == "the train was over before the circuit was up; it was reserved for 0 s"


async def test_a_feed_that_leaves_circuits_gives_its_one_back(world: World) -> None:
    await world.stir()
    world.choose()
    await world.settle()
    await world.after(2)
    assert (world.steps(), world.circuits()) == (["ended"], [])
    assert world.watched()[-1] == SilencesWatched(())


async def test_two_feeds_have_one_order_at_a_time_for_the_same_ends(world: World) -> None:
    await world.open(TERMS, feed="CONDUIT")
    await world.stir()
    await world.stir("CONDUIT")
    assert [order.feed for order in world.orders()] == [FEED]
    await world.silence()
    await world.after(2)
    assert [(order.feed, order.step) for order in world.orders()] == [(FEED, "ended"), ("CONDUIT", "up")]


async def test_sites_of_one_feed_have_circuits_of_their_own(world: World) -> None:
    world.choose(TERMS, replace(TERMS, site="ttu.edu", hold_s=20))
    await world.stir()
    assert sorted(world.riders()) == ["ttu.edu", "unl.edu"]
    await world.silence()
    assert sorted(world.riders()) == ["ttu.edu"], "its hold time is longer"
    await world.after(16)
    assert world.riders() == {}


async def test_the_smallest_hold_of_an_offer_is_kept(world: World) -> None:
    with world.ledger.transaction() as tx:
        tx.planning.offers.put(replace(OFFER, least_hold_s=30))
    await world.stir()
    await world.silence()
    await world.after(28)
    assert world.steps() == ["up"]
    await world.after(4)
    assert world.steps() == ["ended"]


async def test_a_circuit_is_ordered_ahead_of_a_train_by_habit_and_given_back_if_it_does_not_come(
    ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    world = await World(ledger, clock, tmp_path).open(replace(TERMS, ahead=True))
    for _ in range(8):
        await world.stir()
        await world.after(25)
        await world.silence()
        await world.after(35)
    (*_, last) = world.orders()
    assert (last.step, last.reason) == ("up", "a train is due in 1 s by the feed's habit")
    count = len(world.orders())
    await world.stir()
    await world.after(60)
    await world.silence()
    await world.after(200)
    assert (len(world.orders()) - count, set(world.steps()), world.circuits()) == (0, {"ended"}, [])


async def test_an_unknown_error_at_one_site_is_counted_and_the_next_is_served(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.choose(replace(TERMS, site="ttu.edu"), TERMS)
    request = world.stage.service.request

    async def broken(wanted: Circuit, *, dry_run: bool = False) -> CircuitAnswer:
        if wanted.sites == ("ttu.edu",):
            raise ZeroDivisionError
        return await request(wanted, dry_run=dry_run)

    monkeypatch.setattr(world.stage.service, "request", broken)
    await world.stir()
    assert list(world.riders()) == ["unl.edu"]
    assert any(fault.handler == "scheduler.order" for fault in FAULTS.all())
