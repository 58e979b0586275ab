"""Consumers that decide whether a circuit may be used go by its probes and its override, whichever is worse."""

import re
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

import downburst_scheduler
from downburst.domain.circuits import (
    STANDING,
    Circuit,
    CircuitEnd,
    CircuitOverride,
    CircuitRequest,
    CircuitState,
    Direction,
    Measured,
)
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.ordering import DemandOrder, OrderStep, OrderTimes
from downburst.domain.plans import Transport
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger, Transaction
from downburst.settings.hub import Settings
from downburst.settings.scheduler import SchedulerSettings
from downburst_api.deliveries.service import _by_site
from downburst_scheduler.demand.cores import Led, core_rides
from downburst_scheduler.demand.riding import OnDemand
from downburst_scheduler.demand.steps import Act, Facts, next_step
from downburst_scheduler.demand.trains import Need
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.offers import CircuitOffers
from factories import SOME_TIME
from unit.scheduler.test_loop import Hub

M = 1_000_000
ACTIVE, DOWN = CircuitState.ACTIVE, CircuitState.DOWN
ENDS = (CircuitEnd("hub-eth0"), CircuitEnd("a-eth1", "a"))
CIRCUIT = Circuit(1, CircuitRequest("r"), ENDS, 500 * M, 0, SOME_TIME, None, state=ACTIVE, reason="by its probes")
KEPT = [state for state in CircuitState if state is not CircuitState.REQUESTED]
TIMES = OrderTimes(SOME_TIME, SOME_TIME + timedelta(hours=1), up_at=SOME_TIME)


def overridden(state: CircuitState, override: CircuitState | None) -> Circuit:
    given = CircuitOverride(override, "the NOC says so", "ann") if override else None
    return replace(CIRCUIT, state=state, override=given)


def row(rate: int = 450, circuit: int = 1) -> Measured:
    return Measured(circuit, "a", Direction.OUT, SOME_TIME, rate * M, 500 * M)


@pytest.fixture
def hub(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> Hub:
    settings = Settings(data_dir=tmp_path, scheduler=SchedulerSettings(step_s=10, window_s=120, dwell_s=60))
    hub = Hub(ledger, settings, clock)
    hub.add("NGRID", "a", "b")
    return hub


def ordered(tx: Transaction, circuit: Circuit) -> None:
    """The circuit as that of an order that is up."""
    order = tx.planning.orders.add(DemandOrder(0, "campus", "NGRID", "a", 50 * M, "a train", TIMES))
    tx.planning.orders.save(replace(order, step=OrderStep.UP))
    tx.circuits.add(replace(circuit, request=CircuitRequest(order.request_id)))


@pytest.mark.parametrize(("state", "rate"), list(product(KEPT, (450, 100))))
def test_offers_are_never_more_than_the_probes_allow(state: CircuitState, rate: int) -> None:
    by_probes = CircuitOffers([overridden(state, None)], [row(rate)])
    as_active = CircuitOffers([overridden(state, ACTIVE)], [row(rate)])
    assert (as_active.to("a"), as_active.why_not("a")) == (by_probes.to("a"), by_probes.why_not("a"))
    as_down = CircuitOffers([overridden(state, DOWN)], [row(rate)])
    assert as_down.to("a") is None
    if state in STANDING - {DOWN}:
        assert as_down.why_not("a") == "a: circuit 1 is down: overridden by ann: the NOC says so"


@pytest.mark.parametrize("state", [state for state in KEPT if state not in (ACTIVE, CircuitState.DEGRADED)])
async def test_no_plan_rides_a_circuit_that_its_probes_refuse(hub: Hub, state: CircuitState) -> None:
    with hub.ledger.transaction() as tx:
        circuit = tx.circuits.add(overridden(state, ACTIVE))
        tx.circuits.measured([row(circuit=circuit.number)])
        tx.planning.pins.set("NGRID", Transport.STATIC_CIRCUIT, by="op")
    await hub.loop.start()
    assert [(leg.transport, leg.sites) for leg in hub.plan().legs] == [(Transport.UNICAST, ("a", "b"))]


async def test_feeds_leave_a_circuit_that_is_overridden_as_down_at_once_and_return_when_it_is_cleared(
    hub: Hub,
) -> None:
    with hub.ledger.transaction() as tx:
        circuit = tx.circuits.add(CIRCUIT)
        tx.circuits.measured([row(circuit=circuit.number)])
        tx.planning.pins.set("NGRID", Transport.STATIC_CIRCUIT, by="op")
    await hub.loop.start()
    riding = hub.plan().legs[-1]
    assert riding.circuits == (("a", circuit.number),)
    for state, override, rides in (
        (ACTIVE, DOWN, False),
        (ACTIVE, None, True),
        (DOWN, ACTIVE, False),
        (ACTIVE, ACTIVE, True),
    ):
        with hub.ledger.transaction() as tx:
            tx.circuits.save(replace(circuit, state=state, override=overridden(state, override).override))
        await hub.loop.handle(CircuitsChanged(circuit.number))
        assert (hub.plan().legs[-1].transport is Transport.STATIC_CIRCUIT) is rides, (state, override)
    with hub.ledger.transaction() as tx:
        tx.circuits.save(replace(circuit, override=overridden(ACTIVE, DOWN).override))
    await hub.loop.handle(CircuitsChanged(circuit.number))
    assert "a: circuit 1 is down: overridden by ann: the NOC says so" in hub.plan().reason


@pytest.mark.parametrize(("state", "override"), list(product(KEPT, (None, ACTIVE, DOWN))))
def test_no_order_rides_against_its_probes_or_an_override(
    hub: Hub, state: CircuitState, override: CircuitState | None
) -> None:
    circuit = overridden(state, override)
    with hub.ledger.transaction() as tx:
        ordered(tx, circuit)
        riders = OnDemand.of(tx, now=SOME_TIME, price=1.0).riders
    assert bool(riders) is (state is ACTIVE and override is not DOWN)


@pytest.mark.parametrize(("state", "override"), list(product(KEPT, (None, ACTIVE, DOWN))))
def test_no_way_is_led_over_a_core_against_its_probes_or_an_override(
    hub: Hub, state: CircuitState, override: CircuitState | None
) -> None:
    ends = (CircuitEnd("depot-eth1", "depot", address="10.231.0.1/31"), CircuitEnd("a-eth1", "a"))
    circuit = replace(overridden(state, override), ends=ends)
    with hub.ledger.transaction() as tx:
        ordered(tx, circuit)
        assert bool(core_rides(tx)) is (state is ACTIVE and override is not DOWN)
    is_waited_for = state in (ACTIVE, CircuitState.DEGRADED) and override is not DOWN
    assert Led(_leaving={"a": 1}).rides("a", circuit) is is_waited_for


@pytest.mark.parametrize(
    ("state", "step"), list(product(KEPT, (OrderStep.ORDERED, OrderStep.UP, OrderStep.RELEASING)))
)
def test_the_acting_loop_takes_no_other_step_for_an_override_to_active(state: CircuitState, step: OrderStep) -> None:
    terms = DemandTerms("a", "campus", 50 * M, 1.0, 5.0)
    order = DemandOrder(1, "campus", "NGRID", "a", 50 * M, "a train", TIMES, step)
    facts = Facts(SOME_TIME, order, overridden(state, None), Need(0.0, "a train"), terms, 1.0)
    assert next_step(replace(facts, circuit=overridden(state, ACTIVE))) == next_step(facts)


def test_the_acting_loop_leaves_a_circuit_that_is_overridden_as_down_or_torn_down() -> None:
    terms = DemandTerms("a", "campus", 50 * M, 1.0, 5.0)
    order = DemandOrder(1, "campus", "NGRID", "a", 50 * M, "a train", TIMES, OrderStep.UP)
    facts = Facts(SOME_TIME, order, overridden(ACTIVE, DOWN), Need(0.0, "a train"), terms, 1.0)
    left = next_step(facts)
    assert left is not None
    assert (left.act, left.sentence) == (
        Act.LEAVE,
        "the circuit died: it is down: overridden by ann: the NOC says so",
    )
    for state in (CircuitState.TEARING_DOWN, CircuitState.WAITING):
        torn = next_step(replace(facts, circuit=overridden(state, ACTIVE)))
        assert torn is not None
        assert (torn.act, torn.sentence.partition(":")[0]) == (Act.LEAVE, "the path of the circuit was torn down")


@pytest.mark.parametrize("state", sorted(STANDING))
def test_deliveries_are_explained_by_the_usable_state(state: CircuitState) -> None:
    for override in (ACTIVE, DOWN):
        (now,) = _by_site([overridden(state, override)], [row()])["a"]
        assert now.state is (DOWN if override is DOWN else state)


def test_the_scheduler_reads_the_state_by_the_probes_alone_only_to_see_whether_a_node_holds_it() -> None:
    """A consumer that is added goes by `usable_state`, or states here that it needs none."""
    root = Path(downburst_scheduler.__file__).parent
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(r"circuit\.(state|shown_state)\b", line) and not re.search(r"FINISHED|LEAVING|WANTED", line)
    ]
    assert found == []
