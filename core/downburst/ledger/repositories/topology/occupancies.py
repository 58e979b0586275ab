"""The calendar of a window: its circuits with their ports and links, read at once.

A month may hold ten thousand circuits, so this reads the few columns that a view draws, in three queries.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, or_, select

from downburst.domain.circuits import FINISHED, CircuitState, Replication
from downburst.domain.topology.occupancy import Occupancy, View
from downburst.ledger.repositories.circuits import shown_state
from downburst.ledger.tables.circuits import circuit_ends, circuit_hops, circuits

_Ends = dict[int, list[tuple[str, str | None]]]
_Hops = dict[int, list[tuple[str, bool]]]


class Occupancies:
    """Circuits by the time in which they hold their resources."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def within(self, begin: datetime, end: datetime, *, most: int) -> View:
        """The newest circuits that hold resources at some moment of [begin, end)."""
        rows = list(self._connection.execute(_chosen(begin, end, *COLUMNS).limit(most + 1)))
        numbers = _chosen(begin, end, circuits.c.number).limit(most).subquery()
        ends, hops = self._ends(numbers), self._hops(numbers)
        found = (_occupancy(row, ends.get(row.number, []), hops.get(row.number, [])) for row in rows[:most])
        return View(tuple(found), left_out=len(rows) > most)

    def _ends(self, numbers: Any) -> _Ends:
        columns = circuit_ends.c.circuit, circuit_ends.c.port, circuit_ends.c.site
        query = select(*columns).join(numbers, circuit_ends.c.circuit == numbers.c.number)
        found: _Ends = {}
        for circuit, port, site in self._connection.execute(query.order_by(circuit_ends.c.position)):
            found.setdefault(circuit, []).append((port, site))
        return found

    def _hops(self, numbers: Any) -> _Hops:
        columns = circuit_hops.c.circuit, circuit_hops.c.link, circuit_hops.c.forward
        query = select(*columns).join(numbers, circuit_hops.c.circuit == numbers.c.number)
        found: _Hops = {}
        for circuit, link, forward in self._connection.execute(query.order_by(circuit_hops.c.position)):
            found.setdefault(circuit, []).append((link, forward))
        return found


def _chosen(begin: datetime, end: datetime, *columns: Any) -> "Select[Any]":
    """A finished circuit holds nothing from the moment at which it finished."""
    finished = circuits.c.state.in_([state.value for state in FINISHED])
    held = or_(~finished, and_(circuits.c.since > circuits.c.begin, circuits.c.since > begin))
    reaches = or_(circuits.c.end.is_(None), circuits.c.end > begin)
    return select(*columns).where(circuits.c.begin < end, reaches, held).order_by(circuits.c.number.desc())


def _occupancy(row: Row[Any], ends: list[tuple[str, str | None]], hops: list[tuple[str, bool]]) -> Occupancy:
    state = CircuitState(row.state)
    end = row.end
    if state in FINISHED and (end is None or row.since < end):
        end = row.since
    return Occupancy(
        circuit=row.number,
        state=state,
        held_until=row.held_until,
        begin=row.begin,
        end=end,
        rate_out_bps=row.rate_out_bps,
        rate_in_bps=row.rate_in_bps,
        description=row.description,
        copies=1 if row.replication == Replication.UNDERLAY else max(len(ends) - 1, 1),
        ports=tuple(port for port, _ in ends),
        sites=tuple(site for _, site in ends if site is not None),
        forward=tuple(_links(hops, forward=True)),
        back=tuple(_links(hops, forward=False)),
    )


def _links(hops: list[tuple[str, bool]], *, forward: bool) -> Iterator[str]:
    return (link for link, taken_forward in hops if taken_forward == forward)


COLUMNS = (
    circuits.c.number,
    shown_state().label("state"),
    circuits.c.held_until,
    circuits.c.since,
    circuits.c.begin,
    circuits.c.end,
    circuits.c.rate_out_bps,
    circuits.c.rate_in_bps,
    circuits.c.description,
    circuits.c.replication,
)
