"""The table of states: every circuit ends, no state is a trap, and windows are judged by the wall clock."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from downburst.domain.circuits import (
    FINISHED,
    LEAVING,
    STANDING,
    WANTED,
    Circuit,
    CircuitCreation,
    CircuitEnd,
    CircuitOverride,
    CircuitRequest,
    CircuitState,
)
from downburst.foundation.clock import to_us
from downburst.foundation.errors import AlreadyThere, BadInput
from downburst_circuits.lifecycle import (
    TABLE,
    Happening,
    after,
    check_cancellable,
    check_committable,
    check_creatable,
    check_has_path,
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
    due = due_by_window(circuit, to_us(NOON + timedelta(hours=1)))
    is_held = circuit.state is CircuitState.HELD
    assert due == (None if circuit.state in LEAVING else Happening.EXPIRE if is_held else Happening.OVER)
    state = (after(circuit.state, due) if due else None) or circuit.state
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
    assert not [state for state in FINISHED if work_in(state)]


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


def test_a_hold_ends_at_its_moment_or_with_its_window_whichever_comes_first() -> None:
    held = replace(CIRCUIT, state=CircuitState.HELD, held_until=NOON - timedelta(minutes=5))
    assert next_moment_us(held) == to_us(NOON - timedelta(minutes=5))
    assert due_by_window(held, to_us(NOON - timedelta(minutes=5)) - 1) is None
    assert due_by_window(held, to_us(NOON - timedelta(minutes=5))) is Happening.EXPIRE
    longer = replace(held, held_until=NOON + timedelta(hours=2))
    assert next_moment_us(longer) == to_us(NOON + timedelta(hours=1))


def test_a_held_circuit_does_not_begin_before_its_commit() -> None:
    held = replace(CIRCUIT, state=CircuitState.HELD, held_until=NOON + timedelta(minutes=5))
    assert due_by_window(held, to_us(NOON + timedelta(minutes=1))) is None
    assert {to for (state, _), to in TABLE.items() if state is CircuitState.HELD} == {
        CircuitState.HELD,
        CircuitState.ADMITTED,
        CircuitState.EXPIRED,
        CircuitState.CANCELLED,
    }


def test_by_hand_the_window_opens_without_a_path() -> None:
    request = replace(CIRCUIT.request, creation=CircuitCreation.BY_HAND)
    waiting = replace(CIRCUIT, request=request, state=CircuitState.ADMITTED)
    assert due_by_window(waiting, to_us(NOON)) is Happening.OPEN
    assert after(CircuitState.ADMITTED, Happening.OPEN) is CircuitState.WAITING
    assert work_in(CircuitState.WAITING) is None
    assert CircuitState.WAITING not in WANTED


def test_a_node_holds_nothing_that_is_torn_down_until_its_path_is_created_again() -> None:
    for state in WANTED:
        assert after(state, Happening.TEAR_DOWN) is CircuitState.TEARING_DOWN
    on = {to for (state, _), to in TABLE.items() if state is CircuitState.TEARING_DOWN}
    assert not on & WANTED
    assert {event for (state, event), to in TABLE.items() if state is CircuitState.WAITING and to in WANTED} == {
        Happening.CREATE
    }


def test_every_walk_through_the_table_keeps_its_promises() -> None:
    """Every state that can be reached, by every event in every order: an exhaustive search over the table."""
    seen, ahead = {CircuitState.REQUESTED}, [CircuitState.REQUESTED]
    while ahead:
        state = ahead.pop()
        for event in Happening:
            to = after(state, event)
            if to is None:
                continue
            assert state not in FINISHED
            assert state in WANTED or to not in STANDING, "a node sets up nothing that was not wanted before"
            assert state not in LEAVING or to in LEAVING | FINISHED
            if to not in seen:
                seen.add(to)
                ahead.append(to)
    assert seen == set(CircuitState)


@pytest.mark.parametrize("state", CircuitState)
@pytest.mark.parametrize("override", [None, CircuitState.ACTIVE, CircuitState.DOWN])
def test_an_override_takes_a_circuit_away_and_never_gives_it(
    state: CircuitState, override: CircuitState | None
) -> None:
    given = CircuitOverride(override, "a probe is wrong", "ann") if override else None
    circuit = replace(CIRCUIT, state=state, override=given)
    is_down = override is CircuitState.DOWN and state in STANDING
    assert circuit.usable_state is (CircuitState.DOWN if is_down else state)
    hides = override is CircuitState.ACTIVE and state is CircuitState.DEGRADED
    assert circuit.shown_state is (CircuitState.ACTIVE if hides else circuit.usable_state)


def test_moments_at_which_people_come_too_early_or_too_late() -> None:
    at = {state: replace(CIRCUIT, state=state) for state in CircuitState}
    for late in (CircuitState.EXPIRED, CircuitState.CANCELLED, CircuitState.ENDING):
        for check in (lambda one: check_committable(one, to_us(NOON)), check_creatable, check_has_path):
            with pytest.raises(AlreadyThere, match="circuit 1"):
                check(at[late])
    with pytest.raises(AlreadyThere, match="before its window begins, at 2026-07-01 12:00:00 UTC"):
        check_creatable(at[CircuitState.ADMITTED])
    with pytest.raises(AlreadyThere, match="being torn down"):
        check_creatable(at[CircuitState.TEARING_DOWN])
    with pytest.raises(AlreadyThere, match="no path to tear down"):
        check_has_path(at[CircuitState.HELD])
    with pytest.raises(AlreadyThere, match="hold of circuit 1 is over"):
        check_committable(replace(at[CircuitState.HELD], held_until=NOON), to_us(NOON))
