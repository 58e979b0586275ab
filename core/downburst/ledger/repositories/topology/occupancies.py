"""The calendar of a window: its circuits with their ports and links, read at once.

A month may hold ten thousand circuits, so this reads the few columns that a view draws, in three queries, and turns
into objects as little as it can.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, Select, and_, case, func, or_, select, type_coerce

from downburst.domain.circuits import FINISHED, STANDING, CircuitState, Replication
from downburst.domain.topology.occupancy import Occupancy, View
from downburst.foundation.clock import from_us
from downburst.ledger.tables.circuits import circuit_ends, circuit_hops, circuits


class Occupancies:
    """Circuits by the time in which they hold their resources."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def within(self, begin: datetime, end: datetime, *, most: int) -> View:
        """The newest circuits that hold resources at some moment of [begin, end)."""
        near = and_(NEAR.c.circuit == circuits.c.number, NEAR.c.position == 0)
        query = _chosen(begin, end, *COLUMNS).outerjoin(NEAR, near).limit(most + 1)
        rows = self._connection.execute(query).all()
        numbers = _chosen(begin, end, circuits.c.number).limit(most).subquery()
        far, hops = self._joined(numbers, FAR), self._joined(numbers, HOPS)
        found = (_occupancy(row, far.get(row[0], NONE), hops.get(row[0], NONE)) for row in rows[:most])
        return View(found, left_out=len(rows) > most)

    def _joined(self, numbers: Any, columns: tuple[Any, ...]) -> dict[int, tuple[str, ...]]:
        """Names of each circuit in one text: a row and an object for each of them would cost the most of all."""
        circuit, *texts = columns
        names = (func.coalesce(func.aggregate_strings(text, " "), "") for text in texts)
        query = select(circuit, *names).join(numbers, circuit == numbers.c.number)
        if columns is FAR:
            query = query.where(circuit_ends.c.position > 0)
        return {row[0]: row[1:] for row in self._connection.execute(query.group_by(circuit)).all()}


def _chosen(begin: datetime, end: datetime, *columns: Any) -> "Select[Any]":
    """A finished circuit holds nothing from the moment at which it finished."""
    finished = circuits.c.state.in_([state.value for state in FINISHED])
    held = or_(~finished, and_(circuits.c.since > circuits.c.begin, circuits.c.since > begin))
    reaches = or_(circuits.c.end.is_(None), circuits.c.end > begin)
    chosen = select(*columns).select_from(circuits).where(circuits.c.begin < end, reaches, held)
    return chosen.order_by(circuits.c.number.desc())


def _occupancy(row: Any, far: tuple[str, ...], hops: tuple[str, ...]) -> Occupancy:
    (
        number,
        state_text,
        overridden,
        held_us,
        since_us,
        begin_us,
        end_us,
        out_bps,
        in_bps,
        description,
        replication,
        *near,
    ) = row
    state = STATES[state_text]
    if state in FINISHED and (end_us is None or since_us < end_us):
        end_us = since_us
    far_ports = far[0].split()
    near_port, near_site = near
    return Occupancy(
        number,
        shown(state, overridden),
        None if held_us is None else from_us(held_us),
        from_us(begin_us),
        None if end_us is None else from_us(end_us),
        out_bps,
        in_bps,
        description,
        1 if replication == Replication.UNDERLAY else max(len(far_ports), 1),
        near_port or "",
        far_ports,
        far[1].split() if near_site is None else [near_site, *far[1].split()],
        hops[0].split(),
        hops[1].split(),
    )


def shown(state: CircuitState, overridden: str | None) -> CircuitState:
    """As `Circuit.shown_state`, from the columns alone."""
    if overridden == CircuitState.DOWN and state in STANDING:
        return CircuitState.DOWN
    return CircuitState.ACTIVE if overridden == CircuitState.ACTIVE and state is CircuitState.DEGRADED else state


def _us(column: Any) -> Any:
    """Microseconds as they are stored; most instants of a view are never looked at."""
    return type_coerce(column, BigInteger)


NEAR = circuit_ends.alias()
NONE = "", ""
STATES = {state.value: state for state in CircuitState}
COLUMNS = (
    circuits.c.number,
    circuits.c.state,
    circuits.c.overridden,
    _us(circuits.c.held_until),
    _us(circuits.c.since),
    _us(circuits.c.begin),
    _us(circuits.c.end),
    circuits.c.rate_out_bps,
    circuits.c.rate_in_bps,
    circuits.c.description,
    circuits.c.replication,
    NEAR.c.port,
    NEAR.c.site,
)
FAR = (circuit_ends.c.circuit, circuit_ends.c.port, circuit_ends.c.site)
HOPS = (
    circuit_hops.c.circuit,
    case((circuit_hops.c.forward, circuit_hops.c.link)),
    case((~circuit_hops.c.forward, circuit_hops.c.link)),
)
