"""Ports and circuits in the ledger."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitCreation,
    CircuitEnd,
    CircuitEvent,
    CircuitOverride,
    CircuitRequest,
    CircuitState,
    Direction,
    Measured,
    PathOrder,
    Port,
)
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger import Transaction
from downburst.ledger.repositories import circuits as module
from downburst.ledger.repositories.circuits import Which
from factories import SOME_TIME


def wish(request_id: str = "r1", *, state: CircuitState = CircuitState.ADMITTED, site: str = "unl.edu") -> Circuit:
    ends = (
        CircuitEnd("hub-eth0", first_vlan=100, last_vlan=199, vlan=100),
        CircuitEnd(f"{site}-eth1", site, vlan=101),
    )
    end = SOME_TIME + timedelta(hours=1)
    request = CircuitRequest(request_id, asked_sha256="0" * 64)
    return Circuit(0, request, ends, 500_000_000, 10_000_000, SOME_TIME, end, state=state)


def event(number: int, sentence: str) -> CircuitEvent:
    return CircuitEvent(number, SOME_TIME, "admitted", CircuitState.ADMITTED, sentence)


def test_a_port_is_kept_changed_and_removed(tx: Transaction, clock: FakeClock) -> None:
    added = tx.ports.add(Port("hub-eth0", 1_000_000_000, interface="eth0", first_vlan=100, last_vlan=199))
    assert added.created_at == clock.now()
    assert tx.ports.all() == [added]
    changed = tx.ports.change(replace(added, rate_bps=10_000_000_000))
    assert tx.ports.one("hub-eth0") == changed
    with pytest.raises(AlreadyThere, match="ports set hub-eth0"):
        tx.ports.add(added)
    tx.ports.remove("hub-eth0")
    with pytest.raises(NotFound, match="ports list"):
        tx.ports.one("hub-eth0")


def test_a_circuit_is_read_as_it_was_written(tx: Transaction, clock: FakeClock) -> None:
    kept = tx.circuits.add(wish())
    assert kept == replace(wish(), number=kept.number, created_at=clock.now(), since=clock.now())
    later = replace(kept, state=CircuitState.FAILED, reason="no route", rate_out_bps=1, end=None)
    later = replace(later, ends=(kept.ends[0], replace(kept.ends[1], address="10.0.0.1/31")))
    tx.circuits.save(later)
    assert tx.circuits.one(kept.number) == later


def test_the_same_request_finds_its_circuit(tx: Transaction) -> None:
    kept = tx.circuits.add(wish("mine"))
    assert tx.circuits.of_request("mine") == kept
    assert tx.circuits.of_request("other") is None


def test_lists_are_narrowed_by_state_site_and_port(tx: Transaction) -> None:
    first = tx.circuits.add(wish("a"))
    second = tx.circuits.add(wish("b", state=CircuitState.ENDED, site="ttu.edu"))
    assert tx.circuits.unfinished() == [first]
    assert tx.circuits.newest(Which()) == [second, first]
    assert tx.circuits.newest(Which(), limit=1) == [second]
    assert tx.circuits.newest(Which(states=[CircuitState.ADMITTED])) == [first]
    assert tx.circuits.newest(Which(site="ttu.edu")) == [second]
    assert tx.circuits.newest(Which(port="hub-eth0")) == [second, first]
    assert tx.circuits.newest(Which(port="nowhere")) == []


def test_more_circuits_than_a_question_takes_keep_their_ends(
    tx: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 2)
    for number in range(5):
        tx.circuits.add(wish(str(number)))
    assert [len(circuit.ends) for circuit in tx.circuits.unfinished()] == [2] * 5


def test_events_are_told_in_order_and_bounded(tx: Transaction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVENTS_KEPT", 3)
    one, other = (tx.circuits.add(wish(name)).number for name in "ab")
    tx.circuits.note(event(other, "stays"))
    for number in range(5):
        tx.circuits.note(event(one, str(number)))
    assert [each.sentence for each in tx.circuits.events(one)] == ["2", "3", "4"]
    assert tx.circuits.events(other) == [event(other, "stays")]


def test_finished_circuits_are_forgotten_in_the_end_with_all_that_is_theirs(
    tx: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FINISHED_KEPT", 1)
    old = tx.circuits.add(wish("old", state=CircuitState.ENDED)).number
    tx.circuits.note(event(old, "gone"))
    waiting = tx.circuits.add(wish("waits")).number
    tx.circuits.add(wish("x"))
    tx.circuits.add(wish("y"))
    assert old not in [circuit.number for circuit in tx.circuits.newest(Which())]
    assert waiting in [circuit.number for circuit in tx.circuits.newest(Which())]
    assert tx.circuits.events(old) == []


def test_the_newest_measurement_of_an_end_replaces_the_one_before(tx: Transaction) -> None:
    number = tx.circuits.add(wish()).number
    first = Measured(number, "unl.edu", Direction.OUT, SOME_TIME, 450_000_000, 500_000_000)
    second = replace(first, rate_bps=240_000_000, cause="policer", sentence="why", remedy="what")
    back = replace(first, direction=Direction.IN, round_trip_us=36_000)
    tx.circuits.measured([first, back])
    tx.circuits.measured([second])
    assert set(tx.circuits.measurements()) == {second, back}
    assert tx.circuits.measurements([number + 1]) == []
    assert (first.enough, second.enough) == (True, False)


def test_what_belongs_to_its_life_is_read_as_it_was_written(tx: Transaction, clock: FakeClock) -> None:
    request = CircuitRequest(
        "mine",
        creation=CircuitCreation.BY_HAND,
        include=("core-1", "s2"),
        exclude=("s9",),
        path_order=PathOrder.WIDEST,
    )
    held = replace(wish(state=CircuitState.HELD), request=request, held_until=clock.now() + timedelta(minutes=2))
    kept = tx.circuits.add(held)
    assert (
        kept
        == tx.circuits.one(kept.number)
        == replace(held, number=kept.number, created_at=clock.now(), since=clock.now())
    )
    override = CircuitOverride(CircuitState.DOWN, "its switch is replaced", "ann")
    later = replace(kept, state=CircuitState.DEGRADED, held_until=None, override=override)
    tx.circuits.save(later)
    assert tx.circuits.one(kept.number) == later
    tx.circuits.save(replace(later, override=None))
    assert tx.circuits.one(kept.number).overridden is None


def test_the_window_of_a_held_circuit_has_not_begun_and_that_of_a_waiting_one_has(tx: Transaction) -> None:
    held = tx.circuits.add(wish("held", state=CircuitState.HELD))
    waiting = tx.circuits.add(wish("waiting", state=CircuitState.WAITING))
    tx.circuits.add(wish("expired", state=CircuitState.EXPIRED))
    assert tx.circuits.unfinished() == [held, waiting]
    assert tx.circuits.begun() == [waiting]
    assert tx.circuits.next_to_begin(10) == []


def test_the_archive_is_left_out_on_request_and_never_gone(tx: Transaction, clock: FakeClock) -> None:
    old = tx.circuits.add(wish("old", state=CircuitState.EXPIRED))
    lasting = tx.circuits.add(wish("lasting", state=CircuitState.WAITING))
    clock.advance(31 * 86_400)
    fresh = tx.circuits.add(wish("fresh", state=CircuitState.ENDED))
    of_late = Which(finished_since=clock.now() - timedelta(days=30))
    assert tx.circuits.newest(of_late) == [fresh, lasting]
    assert tx.circuits.newest(Which()) == [fresh, lasting, old]


def test_lists_go_by_the_state_that_people_see(tx: Transaction) -> None:
    for shown, state, override in (
        (CircuitState.ACTIVE, CircuitState.DEGRADED, CircuitState.ACTIVE),
        (CircuitState.DOWN, CircuitState.ACTIVE, CircuitState.DOWN),
        (CircuitState.WAITING, CircuitState.WAITING, CircuitState.DOWN),
        (CircuitState.FAILED, CircuitState.FAILED, CircuitState.ACTIVE),
    ):
        given = CircuitOverride(override, "known to the NOC", "ann")
        kept = tx.circuits.add(replace(wish(f"{state}-{override}", state=state), override=given))
        assert kept.shown_state is shown
        assert [one.number for one in tx.circuits.newest(Which(states=[shown]))] == [kept.number]
    assert len(tx.circuits.newest(Which(states=list(CircuitState)))) == 4
    assert tx.circuits.newest(Which(states=[CircuitState.DEGRADED, CircuitState.ENDED])) == []
