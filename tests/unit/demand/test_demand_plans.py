"""Plans with circuits on demand: terms, the riders of the moment, and what a restart keeps."""

from dataclasses import replace
from pathlib import Path

import pytest

from downburst.domain.circuits import Circuit, CircuitEnd, CircuitRequest, CircuitState, Direction, Measured, Port
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.ordering import Budget, DemandOrder, Offer, OrderStep, OrderTimes
from downburst.domain.plans import Transport
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.settings.hub import Settings
from downburst.settings.scheduler import SchedulerSettings
from downburst_scheduler.demand.riding import HOLD_KEPT_FROM, OnDemand, is_other
from downburst_scheduler.demand.written import figures_of, terms_of
from downburst_scheduler.models.demand.terms import DemandTerms
from factories import SOME_TIME
from unit.scheduler.test_loop import SIZES, Hub

M = 1_000_000
OFFER = Offer("campus", "hub-eth0", ("a-eth0",), (10 * M, 50 * M), setup_s=1.0)
TERMS = DemandTerms("a", "campus", 50 * M, 1.0, 5.0)


@pytest.fixture
def hub(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> Hub:
    settings = Settings(data_dir=tmp_path, scheduler=SchedulerSettings(step_s=10, window_s=120, dwell_s=60))
    hub = Hub(ledger, settings, clock)
    hub.add("NGRID", "a", "b")
    with ledger.transaction() as tx:
        tx.ports.add(Port("hub-eth0", 500 * M))
        tx.ports.add(Port("a-eth0", 500 * M, "a"))
        tx.planning.offers.put(OFFER)
        tx.planning.pins.set("NGRID", Transport.DYNAMIC_CIRCUIT, by="op")
    return hub


def order_up(hub: Hub, state: CircuitState = CircuitState.ACTIVE) -> tuple[DemandOrder, Circuit]:
    """An order that the acting loop has brought up."""
    times = OrderTimes(SOME_TIME, SOME_TIME, up_at=SOME_TIME)
    with hub.ledger.transaction() as tx:
        order = tx.planning.orders.add(DemandOrder(0, "campus", "NGRID", "a", 50 * M, "a train", times))
        order = replace(order, step=OrderStep.UP)
        tx.planning.orders.save(order)
        ends = (CircuitEnd("hub-eth0"), CircuitEnd("a-eth0", "a"))
        wish = Circuit(0, CircuitRequest(order.request_id), ends, 50 * M, 0, SOME_TIME, None, state=state)
        circuit = tx.circuits.add(wish)
        tx.circuits.measured([Measured(circuit.number, "a", Direction.OUT, SOME_TIME, 50 * M, 50 * M)])
    return order, circuit


async def trains(hub: Hub, count: int) -> None:
    for _ in range(count):
        await hub.seconds(5, sizes=SIZES)
        await hub.seconds(25, sizes=())


async def test_a_plan_on_circuits_has_terms_and_its_sites_wait_on_the_routed_path(hub: Hub) -> None:
    await hub.loop.start()
    await trains(hub, 4)
    plan = hub.plan()
    (terms,) = terms_of(plan.figures)
    assert (plan.transport, terms.site, terms.offer) == (Transport.DYNAMIC_CIRCUIT, "a", "campus")
    assert [(leg.transport, leg.sites) for leg in plan.legs] == [(Transport.UNICAST, ("a", "b"))]


async def test_a_site_rides_while_its_circuit_is_active_and_is_back_with_the_event_that_it_is_not(hub: Hub) -> None:
    await hub.loop.start()
    await trains(hub, 4)
    order, circuit = order_up(hub)
    await hub.loop.handle(CircuitsChanged(circuit.number))
    routed, riding = hub.plan().legs
    assert (routed.sites, riding.transport) == (("b",), Transport.DYNAMIC_CIRCUIT)
    assert riding.circuits == (("a", circuit.number),)
    assert f"onto circuits: a by order {order.number} and circuit {circuit.number} (active)" in hub.plan().reason

    count = len(hub.history())
    await hub.restart()
    assert (len(hub.history()), hub.plan().transport) == (count, Transport.DYNAMIC_CIRCUIT), "a restart keeps all"
    await trains(hub, 1)
    assert hub.plan().legs[-1].circuits == riding.circuits

    with hub.ledger.transaction() as tx:
        tx.circuits.save(replace(circuit, state=CircuitState.DOWN, reason="cut"))
    await hub.loop.handle(CircuitsChanged(circuit.number))
    assert [leg.sites for leg in hub.plan().legs] == [("a", "b")]
    assert f"back to the routed path: a from circuit {circuit.number}" in hub.plan().reason


async def test_an_order_that_is_given_back_moves_the_feed_first(hub: Hub) -> None:
    await hub.loop.start()
    await trains(hub, 4)
    order, circuit = order_up(hub)
    await hub.loop.handle(CircuitsChanged(circuit.number))
    with hub.ledger.transaction() as tx:
        tx.planning.orders.save(replace(order, step=OrderStep.RELEASING))
    await hub.loop.handle(CircuitsChanged(circuit.number))
    assert [leg.transport for leg in hub.plan().legs] == [Transport.UNICAST]


async def test_ordered_circuits_are_no_offers_for_static_ones(hub: Hub) -> None:
    order_up(hub)
    with hub.ledger.transaction() as tx:
        tx.planning.pins.set("NGRID", Transport.STATIC_CIRCUIT, by="op")
    await hub.loop.start()
    assert hub.plan().transport is Transport.UNICAST


def test_the_cheapest_offer_that_is_not_spent_counts(hub: Hub) -> None:
    with hub.ledger.transaction() as tx:
        tx.planning.offers.put(replace(OFFER, name="cheap", price=0.1, budget=Budget(orders=0)))
        tx.planning.offers.put(replace(OFFER, name="dear", price=3.0))
        found = OnDemand.of(tx, now=SOME_TIME, price=1.0).offers
    assert (found["a"].offer, found["a"].price, found["a"].spent) == ("campus", 1.0, None)
    with hub.ledger.transaction() as tx:
        tx.planning.offers.remove("campus")
        tx.planning.offers.remove("dear")
        found = OnDemand.of(tx, now=SOME_TIME, price=1.0).offers
    assert found["a"].spent == "offer cheap: 0 of 0 orders of the day are used"


def test_terms_survive_in_the_figures_of_a_plan() -> None:
    terms = (TERMS, replace(TERMS, site="b"), replace(TERMS, site="c", hold_s=1.25, ahead=True))
    assert terms_of(figures_of(terms)) == terms
    assert figures_of(()) == {}


@pytest.mark.parametrize("text", ["", "{", "7", '[["o",1,2]]', '[["o",1,2,-3,true,["a"]]]', "[[1e999]]", None, 4.0])
def test_terms_that_can_not_be_read_are_none(text: str | float | None) -> None:
    assert terms_of({"demand": text}) == ()


def test_measurements_make_no_other_terms() -> None:
    same = replace(TERMS, setup_s=2.0, hold_s=TERMS.hold_s * (HOLD_KEPT_FROM + 0.01))
    assert not is_other([same], [TERMS])
    for other in (replace(TERMS, hold_s=9.0), replace(TERMS, ahead=True), replace(TERMS, rate_bps=1), TERMS):
        assert is_other([other], [TERMS]) == (other is not TERMS)
    assert is_other([TERMS], [TERMS, replace(TERMS, site="b")])
