"""The table of states: every circuit ends, no state is a trap, and windows are judged by the wall clock."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from downburst.domain.circuits import FINISHED, LEAVING, Circuit, CircuitEnd, CircuitRequest, CircuitState
from downburst.foundation.clock import to_us
from downburst.foundation.errors import BadInput
from downburst_circuits.lifecycle import (
    TABLE,
    Happening,
    after,
    check_cancellable,
    check_modifiable,
    due_by_window,
    next_moment_us,
    work_in,
)

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
CIRCUIT = Circuit(
    1,
    CircuitRequest("r1"),
    (CircuitEnd("hub-eth0"), CircuitEnd("unl-eth1", "unl.edu")),
    500,
    500,
    NOON,
    NOON + timedelta(hours=1),
)
ALL = [replace(CIRCUIT, state=state) for state in CircuitState if state is not CircuitState.REQUESTED]
LIVE = [circuit for circuit in ALL if circuit.state not in FINISHED]


@pytest.mark.parametrize("circuit", LIVE, ids=lambda circuit: circuit.state)
def test_every_state_leads_to_an_end_by_cancelling(circuit: Circuit) -> None:
    state = after(circuit.state, Happening.CANCEL) or circuit.state
    assert (after(state, Happening.CLEARED) or state) in FINISHED


@pytest.mark.parametrize("circuit", LIVE, ids=lambda circuit: circuit.state)
def test_every_state_ends_when_its_window_has_passed(circuit: Circuit) -> None:
    assert due_by_window(circuit, to_us(NOON + timedelta(hours=1))) == (
        None if circuit.state in LEAVING else Happening.OVER
    )
    state = after(circuit.state, Happening.OVER) or circuit.state
    assert (after(state, Happening.CLEARED) or state) in FINISHED


def test_the_straight_way_through_life() -> None:
    state: CircuitState | None = CircuitState.REQUESTED
    for happening in (Happening.ADMIT, Happening.BEGIN, Happening.BUILT, Happening.PASSED):
        assert state is not None
        state = after(state, happening)
    assert state is CircuitState.ACTIVE


def test_nothing_rides_on_it_before_probes_have_passed() -> None:
    ways_in = {state for (state, happening), to in TABLE.items() if to is CircuitState.ACTIVE and state is not to}
    assert ways_in == {CircuitState.VERIFYING, CircuitState.DEGRADED}
    assert after(CircuitState.PROVISIONING, Happening.PASSED) is None


def test_a_cut_is_no_failure_and_comes_back_by_probes_only() -> None:
    assert after(CircuitState.ACTIVE, Happening.LOST) is CircuitState.DOWN
    assert after(CircuitState.DOWN, Happening.PASSED) is None
    assert after(CircuitState.DOWN, Happening.RETURNED) is CircuitState.VERIFYING


def test_what_is_finished_stays_so() -> None:
    assert not [state for state, _ in TABLE if state in FINISHED]
    assert [work_in(state) for state in FINISHED] == [None, None]


def test_the_begin_is_due_at_its_microsecond_and_no_earlier() -> None:
    waiting = replace(CIRCUIT, state=CircuitState.ADMITTED)
    assert next_moment_us(waiting) == to_us(NOON)
    assert due_by_window(waiting, to_us(NOON) - 1) is None
    assert due_by_window(waiting, to_us(NOON)) is Happening.BEGIN


def test_a_clock_set_back_takes_nothing_from_a_circuit_that_has_begun() -> None:
    active = replace(CIRCUIT, state=CircuitState.ACTIVE)
    assert due_by_window(active, to_us(NOON - timedelta(days=1))) is None
    assert next_moment_us(active) == to_us(NOON + timedelta(hours=1))


def test_a_window_that_passed_while_the_hub_was_off_ends_without_being_built() -> None:
    waiting = replace(CIRCUIT, state=CircuitState.ADMITTED)
    assert due_by_window(waiting, to_us(NOON + timedelta(days=1))) is Happening.OVER
    assert after(CircuitState.ADMITTED, Happening.OVER) is CircuitState.ENDED


def test_an_open_end_is_never_over() -> None:
    endless = replace(CIRCUIT, end=None, state=CircuitState.ACTIVE)
    assert due_by_window(endless, to_us(NOON + timedelta(days=36_500))) is None
    assert next_moment_us(endless) is None


def test_a_finished_circuit_is_neither_cancelled_nor_modified() -> None:
    for check in (check_cancellable, check_modifiable):
        with pytest.raises(BadInput, match="circuits clone 1"):
            check(replace(CIRCUIT, state=CircuitState.ENDED))
