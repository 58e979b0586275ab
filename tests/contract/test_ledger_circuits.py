"""What the ledger keeps of ports and circuits."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.circuits import (
    Circuit,
    CircuitEnd,
    CircuitEvent,
    CircuitState,
    Direction,
    Measured,
    Port,
)
from downburst.clock import FakeClock
from downburst.errors import AlreadyThere, NotFound
from downburst.ledger import Book
from downburst.ledger import circuits as module
from downburst.ledger.circuits import Which
from factories import SOME_TIME


def wish(request_id: str = "r1", *, state: CircuitState = CircuitState.ADMITTED, site: str = "unl.edu") -> Circuit:
    ends = (
        CircuitEnd("hub-eth0", first_vlan=100, last_vlan=199, vlan=100),
        CircuitEnd(f"{site}-eth1", site, vlan=101),
    )
    end = SOME_TIME + timedelta(hours=1)
    return Circuit(0, request_id, ends, 500_000_000, 10_000_000, SOME_TIME, end, state=state, asked_sha256="0" * 64)


def event(number: int, sentence: str) -> CircuitEvent:
    return CircuitEvent(number, SOME_TIME, "admitted", CircuitState.ADMITTED, sentence)


def test_a_port_is_kept_changed_and_removed(book: Book, clock: FakeClock) -> None:
    added = book.ports.add(Port("hub-eth0", 1_000_000_000, interface="eth0", first_vlan=100, last_vlan=199))
    assert added.created_at == clock.now()
    assert book.ports.all() == [added]
    changed = book.ports.change(replace(added, rate_bps=10_000_000_000))
    assert book.ports.one("hub-eth0") == changed
    with pytest.raises(AlreadyThere, match="ports set hub-eth0"):
        book.ports.add(added)
    book.ports.remove("hub-eth0")
    with pytest.raises(NotFound, match="ports list"):
        book.ports.one("hub-eth0")


def test_a_circuit_is_read_as_it_was_written(book: Book, clock: FakeClock) -> None:
    kept = book.circuits.add(wish())
    assert kept == replace(wish(), number=kept.number, created_at=clock.now(), since=clock.now())
    later = replace(kept, state=CircuitState.FAILED, reason="no route", rate_out_bps=1, end=None)
    later = replace(later, ends=(kept.ends[0], replace(kept.ends[1], address="10.0.0.1/31")))
    book.circuits.save(later)
    assert book.circuits.one(kept.number) == later


def test_the_same_request_finds_its_circuit(book: Book) -> None:
    kept = book.circuits.add(wish("mine"))
    assert book.circuits.of_request("mine") == kept
    assert book.circuits.of_request("other") is None


def test_lists_are_narrowed_by_state_site_and_port(book: Book) -> None:
    first = book.circuits.add(wish("a"))
    second = book.circuits.add(wish("b", state=CircuitState.ENDED, site="ttu.edu"))
    assert book.circuits.unfinished() == [first]
    assert book.circuits.newest(Which()) == [second, first]
    assert book.circuits.newest(Which(), limit=1) == [second]
    assert book.circuits.newest(Which(states=[CircuitState.ADMITTED])) == [first]
    assert book.circuits.newest(Which(site="ttu.edu")) == [second]
    assert book.circuits.newest(Which(port="hub-eth0")) == [second, first]
    assert book.circuits.newest(Which(port="nowhere")) == []


def test_more_circuits_than_a_question_takes_keep_their_ends(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 2)
    for number in range(5):
        book.circuits.add(wish(str(number)))
    assert [len(circuit.ends) for circuit in book.circuits.unfinished()] == [2] * 5


def test_events_are_told_in_order_and_bounded(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVENTS_KEPT", 3)
    one, other = (book.circuits.add(wish(name)).number for name in "ab")
    book.circuits.note(event(other, "stays"))
    for number in range(5):
        book.circuits.note(event(one, str(number)))
    assert [each.sentence for each in book.circuits.events(one)] == ["2", "3", "4"]
    assert book.circuits.events(other) == [event(other, "stays")]


def test_finished_circuits_are_forgotten_in_the_end_with_all_that_is_theirs(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FINISHED_KEPT", 1)
    old = book.circuits.add(wish("old", state=CircuitState.ENDED)).number
    book.circuits.note(event(old, "gone"))
    waiting = book.circuits.add(wish("waits")).number
    book.circuits.add(wish("x"))
    book.circuits.add(wish("y"))
    assert old not in [circuit.number for circuit in book.circuits.newest(Which())]
    assert waiting in [circuit.number for circuit in book.circuits.newest(Which())]
    assert book.circuits.events(old) == []


def test_the_newest_measurement_of_an_end_replaces_the_one_before(book: Book) -> None:
    number = book.circuits.add(wish()).number
    first = Measured(number, "unl.edu", Direction.OUT, SOME_TIME, 450_000_000, 500_000_000)
    second = replace(first, rate_bps=240_000_000, cause="policer", sentence="why", remedy="what")
    back = replace(first, direction=Direction.IN, round_trip_us=36_000)
    book.circuits.measured([first, back])
    book.circuits.measured([second])
    assert set(book.circuits.measurements()) == {second, back}
    assert book.circuits.measurements([number + 1]) == []
    assert (first.enough, second.enough) == (True, False)
