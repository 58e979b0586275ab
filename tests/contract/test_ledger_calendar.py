"""The calendar of a window in the ledger."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitEnd,
    CircuitHop,
    CircuitOverride,
    CircuitRequest,
    CircuitState,
)
from downburst.domain.topology.occupancy import Occupancy
from downburst.ledger import Transaction
from downburst.ledger.repositories.topology.occupancies import shown
from factories import SOME_TIME

HOUR = timedelta(hours=1)


def at(hours: float) -> datetime:
    return SOME_TIME + hours * HOUR


def added(tx: Transaction, name: str, begin: float, end: float | None, **more: object) -> Circuit:
    ends = (CircuitEnd("hub-eth0"), CircuitEnd("unl-eth1", "unl.edu"))
    until = None if end is None else at(end)
    circuit = Circuit(0, CircuitRequest(name, description=name), ends, 10**8, 10**7, at(begin), until)
    path = (CircuitHop("up", forward=True, tag=100), CircuitHop("unl", forward=False))
    return tx.circuits.add(replace(circuit, state=CircuitState.ADMITTED, path=path, **more))  # type: ignore[arg-type]


def looked(tx: Transaction, begin: float, end: float, most: int) -> tuple[list[Occupancy], bool]:
    view = tx.planning.occupancies.within(at(begin), at(end), most=most)
    return list(view.circuits), view.left_out


def within(tx: Transaction, begin: float, end: float) -> list[Occupancy]:
    return looked(tx, begin, end, most=100)[0]


def names(circuits: list[Occupancy]) -> list[str]:
    return [one.description for one in circuits]


def test_the_circuits_of_a_window_come_with_their_ports_and_links(tx: Transaction) -> None:
    added(tx, "one", 1, 2)
    (one,) = within(tx, 0, 5)
    assert (one.near_port, one.far_ports, one.sites) == ("hub-eth0", ["unl-eth1"], ["unl.edu"])
    assert (one.forward, one.back) == (["up"], ["unl"])
    assert (one.begin, one.end, one.copies) == (at(1), at(2), 1)


def test_windows_are_half_open_and_may_have_no_end(tx: Transaction) -> None:
    added(tx, "before", 0, 1)
    added(tx, "inside", 1, 2)
    added(tx, "after", 2, 3)
    added(tx, "open", 0, None)
    assert names(within(tx, 1, 2)) == ["open", "inside"]
    assert names(within(tx, 2.5, 9)) == ["open", "after"]


def test_a_finished_circuit_holds_nothing_after_its_finish(tx: Transaction) -> None:
    early = added(tx, "early", 1, 5)
    never = added(tx, "never", 3, 5)
    tx.circuits.save(replace(early, state=CircuitState.CANCELLED, since=at(2)))
    tx.circuits.save(replace(never, state=CircuitState.CANCELLED, since=at(2)))
    (one,) = within(tx, 0, 9)
    assert (one.description, one.end) == ("early", at(2))
    assert names(within(tx, 2, 9)) == []


def test_the_newest_are_kept_if_there_are_too_many(tx: Transaction) -> None:
    for number in range(4):
        added(tx, str(number), 1, 2)
    found, left_out = looked(tx, 0, 9, most=3)
    assert (names(found), left_out) == (["3", "2", "1"], True)
    assert all(one.forward == ["up"] for one in found)
    assert not looked(tx, 0, 9, most=4)[1]


@pytest.mark.parametrize("state", CircuitState)
@pytest.mark.parametrize("overridden", [None, CircuitState.ACTIVE, CircuitState.DOWN])
def test_the_state_is_the_one_that_people_see_elsewhere(state: CircuitState, overridden: CircuitState | None) -> None:
    override = None if overridden is None else CircuitOverride(overridden, "a test", "anna")
    circuit = Circuit(1, CircuitRequest("a"), (), 1, 0, at(0), None, state=state, override=override)
    assert shown(state, overridden) is circuit.shown_state


def test_an_override_is_shown(tx: Transaction) -> None:
    made = added(tx, "one", 1, 2)
    override = CircuitOverride(CircuitState.DOWN, "a test", "anna")
    tx.circuits.save(replace(made, state=CircuitState.ACTIVE, override=override))
    assert [one.state for one in within(tx, 0, 9)] == [CircuitState.DOWN]
