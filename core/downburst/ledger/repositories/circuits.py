"""Ports, and the circuits reserved on them, with their events and measurements."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, case, delete, func, insert, select, update

from downburst.domain.access import THE_HUB, who_acts
from downburst.domain.circuits import (
    FINISHED,
    STANDING,
    UPCOMING,
    Cap,
    Circuit,
    CircuitCarriage,
    CircuitCreation,
    CircuitDriver,
    CircuitEnd,
    CircuitEvent,
    CircuitHop,
    CircuitOverride,
    CircuitRequest,
    CircuitShape,
    CircuitState,
    Direction,
    Measured,
    PathOrder,
    Port,
    Replication,
)
from downburst.domain.ordering.offers import at_sender
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, BadInput, Failure, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.storage.rows import put
from downburst.ledger.tables.circuits import (
    circuit_ends,
    circuit_events,
    circuit_hops,
    circuit_measurements,
    circuit_ports,
    circuits,
)
from downburst.ledger.tables.ordering import circuit_offers

Part = TypeVar("Part", CircuitRequest, CircuitCarriage)


class Ports:
    """Ports by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Port]:
        """Every port, by name."""
        rows = self._connection.execute(select(circuit_ports).order_by(circuit_ports.c.name))
        return [Port(**row._mapping) for row in rows]

    def one(self, name: str) -> Port:
        """The port; refuses an unknown name."""
        row = self._connection.execute(select(circuit_ports).where(circuit_ports.c.name == name)).one_or_none()
        if row is None:
            raise NotFound(f"there is no port {name!r}; `downburst ports list` shows all, `ports add` creates one")
        return Port(**row._mapping)

    def add(self, port: Port) -> Port:
        """Adds a port; refuses a name that is taken."""
        taken = select(circuit_ports.c.name).where(circuit_ports.c.name == port.name)
        if self._connection.scalar(taken) is not None:
            raise AlreadyThere(f"port {port.name!r} already exists; change it with `downburst ports set {port.name}`")
        limits.PORTS.check(self._connection, circuit_ports, holder="this hub")
        row = asdict(port) | {"created_at": self._clock.now()}
        self._connection.execute(insert(circuit_ports).values(row))
        kept = self.one(port.name)
        self._audit.record("port", port.name, "added", after=kept)
        return kept

    def change(self, port: Port) -> Port:
        """Updates an existing port."""
        before = self.one(port.name)
        if port.sender is not None and (offers := self._offers_of(port.name)):
            raise BadInput(f"offer {offers[0]}: {at_sender(port.name, port.sender)}")
        row = asdict(port) | {"created_at": before.created_at}
        put(self._connection, circuit_ports, row)
        kept = self.one(port.name)
        self._audit.record("port", port.name, "changed", before=before, after=kept)
        return kept

    def remove(self, name: str) -> None:
        """Removes a port; refused while offers of circuits name it."""
        before = self.one(name)
        offers = self._offers_of(name)
        if offers:
            few = ", ".join(offers[:5]) + (f" and {len(offers) - 5} more" if len(offers) > 5 else "")
            raise AlreadyThere(f"port {name!r} is named by offers of circuits: {few}; change or remove them first")
        self._connection.execute(delete(circuit_ports).where(circuit_ports.c.name == name))
        self._audit.record("port", name, "removed", before=before)

    def _offers_of(self, name: str) -> list[str]:
        """The names of the offers with this port at either end."""
        query = select(circuit_offers.c.name, circuit_offers.c.hub_port, circuit_offers.c.ports)
        rows = self._connection.execute(query.order_by(circuit_offers.c.name))
        return [row.name for row in rows if name in (row.hub_port, *row.ports)]


@dataclass(frozen=True, slots=True)
class Revision:
    """The newest event of a circuit."""

    number: int
    """Higher than those of all events before."""
    at: datetime


@dataclass(frozen=True, slots=True)
class Which:
    """A selection of circuits; None stands for all."""

    states: Sequence[CircuitState] | None = None
    site: str | None = None
    port: str | None = None
    finished_since: datetime | None = None
    """Leaves out those that were finished before, the archive."""


class Circuits:
    """Circuits by number; the archive reaches back a hundred thousand numbers."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def add(self, circuit: Circuit) -> Circuit:
        """Adds a circuit under a new number; its own number is ignored."""
        unfinished = circuits.c.state.not_in(_FINISHED)
        limits.CIRCUITS.check(self._connection, circuits, unfinished, holder="this hub")
        now = self._clock.now()
        row = _row(circuit) | {"created_at": now, "since": now}
        del row["number"]
        key = self._connection.execute(insert(circuits), row).inserted_primary_key
        if key is None:
            raise Failure("the ledger gave no number to a circuit; check the database")
        number = int(key[0])
        ends = [_end_row(number, position, end) for position, end in enumerate(circuit.ends)]
        self._connection.execute(insert(circuit_ends), ends)
        self._add_hops(replace(circuit, number=number))
        if number > FINISHED_KEPT:
            self._forget_before(number - FINISHED_KEPT)
        kept = replace(circuit, number=number, created_at=now, since=now)
        self._audit.record("circuit", number, "added", after=kept.flat())
        return kept

    def save(self, circuit: Circuit) -> None:
        """Saves the current state of an existing circuit; the path between two ends stays as it was added."""
        # The hub's own frequent changes to circuits are in their events.
        if who_acts() is not THE_HUB:
            before = self.one(circuit.number)
            self._audit.record("circuit", circuit.number, "changed", before=before.flat(), after=circuit.flat())
        self._connection.execute(update(circuits).where(circuits.c.number == circuit.number).values(_row(circuit)))
        self._put_ends(circuit)
        if circuit.shape is CircuitShape.MULTIPOINT:
            self._connection.execute(delete(circuit_hops).where(circuit_hops.c.circuit == circuit.number))
            self._add_hops(circuit)

    def one(self, number: int) -> Circuit:
        """The circuit; refuses an unknown number."""
        found = self._read(select(circuits).where(circuits.c.number == number))
        if not found:
            raise NotFound(f"there is no circuit {number}; `downburst circuits list` shows all")
        return found[0]

    def of_request(self, request_id: str) -> Circuit | None:
        """The circuit that a request created, if any."""
        found = self._read(select(circuits).where(circuits.c.request_id == request_id))
        return found[0] if found else None

    def unfinished(self) -> list[Circuit]:
        """Every circuit that is waiting, in use or still to be removed, by number."""
        return self._read(select(circuits).where(circuits.c.state.not_in(_FINISHED)).order_by(circuits.c.number))

    def begun(self) -> list[Circuit]:
        """Every circuit whose window has begun and that is not finished, by number."""
        waiting = (*_FINISHED, *(state.value for state in UPCOMING))
        return self._read(select(circuits).where(circuits.c.state.not_in(waiting)).order_by(circuits.c.number))

    def next_to_begin(self, limit: int) -> list[Circuit]:
        """The circuits that wait for their beginning, the next one first."""
        waiting = circuits.c.state == CircuitState.ADMITTED.value
        return self._read(select(circuits).where(waiting).order_by(circuits.c.begin, circuits.c.number).limit(limit))

    def newest(self, which: Which, *, before: int | None = None, limit: int = 100) -> list[Circuit]:
        """The newest circuits with a number below `before`, newest first."""
        query = select(circuits).order_by(circuits.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(circuits.c.number < before)
        if which.states is not None:
            query = query.where(_shown_as(which.states))
        if which.finished_since is not None:
            query = query.where(circuits.c.state.not_in(_FINISHED) | (circuits.c.since >= which.finished_since))
        if which.site is not None:
            query = query.where(circuits.c.number.in_(_ending_at(circuit_ends.c.site == which.site)))
        if which.port is not None:
            query = query.where(circuits.c.number.in_(_ending_at(circuit_ends.c.port == which.port)))
        return self._read(query)

    def note(self, event: CircuitEvent, *, first: bool = False) -> None:
        """Records an event; the newest two hundred of a circuit are kept, a check that the first event skips."""
        key = self._connection.execute(insert(circuit_events), asdict(event)).inserted_primary_key
        if first:
            return
        of_it = circuit_events.c.circuit == event.circuit
        newest = select(circuit_events.c.number).where(of_it).order_by(circuit_events.c.number.desc())
        oldest_kept = self._connection.scalar(newest.offset(EVENTS_KEPT - 1).limit(1))
        if key is not None and oldest_kept is not None:
            self._connection.execute(delete(circuit_events).where(of_it, circuit_events.c.number < oldest_kept))

    def events(self, number: int) -> list[CircuitEvent]:
        """The events of a circuit, oldest first."""
        columns = [column for column in circuit_events.c if column.name != "number"]
        query = select(*columns).where(circuit_events.c.circuit == number).order_by(circuit_events.c.number)
        return [_event(row) for row in self._connection.execute(query)]

    def revisions(self, numbers: Sequence[int]) -> dict[int, Revision]:
        """The newest event of each circuit."""
        found: dict[int, Revision] = {}
        for first in range(0, len(numbers), NUMBERS_AT_ONCE):
            of_them = circuit_events.c.circuit.in_(numbers[first : first + NUMBERS_AT_ONCE])
            newest = select(func.max(circuit_events.c.number)).where(of_them).group_by(circuit_events.c.circuit)
            query = select(circuit_events.c.circuit, circuit_events.c.number, circuit_events.c.at)
            rows = self._connection.execute(query.where(circuit_events.c.number.in_(newest)))
            found |= {row.circuit: Revision(row.number, row.at) for row in rows}
        return found

    def measured(self, rows: Iterable[Measured]) -> None:
        """Stores measurements; they replace earlier ones of the same end and direction."""
        for row in rows:
            put(self._connection, circuit_measurements, asdict(row))

    def measurements(self, numbers: Sequence[int] | None = None) -> list[Measured]:
        """The last measurement of every end and direction."""
        query = select(circuit_measurements).order_by(circuit_measurements.c.circuit, circuit_measurements.c.site)
        if numbers is not None:
            query = query.where(circuit_measurements.c.circuit.in_(numbers))
        rows = self._connection.execute(query)
        return [Measured(**dict(row._mapping) | {"direction": Direction(row.direction)}) for row in rows]

    def _put_ends(self, circuit: Circuit) -> None:
        for position, end in enumerate(circuit.ends):
            put(self._connection, circuit_ends, _end_row(circuit.number, position, end))
        beyond = (circuit_ends.c.circuit == circuit.number, circuit_ends.c.position >= len(circuit.ends))
        if self._connection.execute(delete(circuit_ends).where(*beyond)).rowcount:
            of_it = circuit_measurements.c.circuit == circuit.number
            gone = circuit_measurements.c.site.not_in(circuit.sites)
            self._connection.execute(delete(circuit_measurements).where(of_it, gone))

    def _add_hops(self, circuit: Circuit) -> None:
        if circuit.path:
            hops = [asdict(hop) | {"circuit": circuit.number, "position": at} for at, hop in enumerate(circuit.path)]
            self._connection.execute(insert(circuit_hops), hops)

    def _read(self, query: "Select[Any]") -> list[Circuit]:
        rows = list(self._connection.execute(query))
        ends: dict[int, list[CircuitEnd]] = {}
        hops: dict[int, list[CircuitHop]] = {}
        # Databases limit the number of parameters of a query.
        for first in range(0, len(rows), NUMBERS_AT_ONCE):
            numbers = [row.number for row in rows[first : first + NUMBERS_AT_ONCE]]
            of_them = select(circuit_ends).where(circuit_ends.c.circuit.in_(numbers))
            for row in self._connection.execute(of_them.order_by(circuit_ends.c.position)):
                ends.setdefault(row.circuit, []).append(_end(row))
            on_them = select(circuit_hops).where(circuit_hops.c.circuit.in_(numbers))
            for row in self._connection.execute(on_them.order_by(circuit_hops.c.position)):
                hops.setdefault(row.circuit, []).append(CircuitHop(row.link, row.forward, row.tag))
        found = ((row, tuple(ends.get(row.number, ())), tuple(hops.get(row.number, ()))) for row in rows)
        return [_circuit(*one) for one in found]

    def _forget_before(self, number: int) -> None:
        old = (circuits.c.state.in_(_FINISHED), circuits.c.number <= number)
        self._connection.execute(delete(circuits).where(*old))


def _ending_at(condition: Any) -> "Select[Any]":
    return select(circuit_ends.c.circuit).where(condition)


def _shown_as(states: Sequence[CircuitState]) -> Any:
    """The condition for circuits that people see in one of these states, as `Circuit.shown_state` tells."""
    values = [state.value for state in states]
    if not STANDING & {*states} or {*states} >= STANDING:
        # Overrides move circuits between the standing states alone; the index of the column serves these lists.
        return circuits.c.state.in_(values)
    standing = circuits.c.state.in_([state.value for state in STANDING])
    is_down = (circuits.c.overridden == CircuitState.DOWN.value) & standing
    is_hidden = (circuits.c.overridden == CircuitState.ACTIVE.value) & (
        circuits.c.state == CircuitState.DEGRADED.value
    )
    shown = case((is_down, CircuitState.DOWN.value), (is_hidden, CircuitState.ACTIVE.value), else_=circuits.c.state)
    return shown.in_(values)


def _row(circuit: Circuit) -> dict[str, Any]:
    row = circuit.flat()
    del row["ends"], row["path"]
    return row


def _end_row(circuit: int, position: int, end: CircuitEnd) -> dict[str, Any]:
    return asdict(end) | {"circuit": circuit, "position": position}


def _circuit(row: Row[Any], ends: tuple[CircuitEnd, ...], path: tuple[CircuitHop, ...]) -> Circuit:
    values = dict(row._mapping) | {
        "driver": CircuitDriver(row.driver),
        "replication": Replication(row.replication),
        "cap": Cap(row.cap),
        "state": CircuitState(row.state),
        "creation": CircuitCreation(row.creation),
        "include": tuple(row.include),
        "exclude": tuple(row.exclude),
        "path_order": PathOrder(row.path_order),
        "override": _override(row),
    }
    for name in _OVERRIDE:
        del values[name]
    request, carriage = _part(CircuitRequest, values), _part(CircuitCarriage, values)
    return Circuit(**values, request=request, ends=ends, carriage=carriage, path=path)


def _override(row: Row[Any]) -> CircuitOverride | None:
    if row.overridden is None:
        return None
    return CircuitOverride(CircuitState(row.overridden), row.override_reason, row.override_by)


def _part(kind: type[Part], values: dict[str, Any]) -> Part:
    """A part of a circuit, from values that are removed from those of its row."""
    return kind(**{it.name: values.pop(it.name) for it in fields(kind)})


def _end(row: Row[Any]) -> CircuitEnd:
    return CircuitEnd(row.port, row.site, row.first_vlan, row.last_vlan, row.vlan, row.address)


def _event(row: Row[Any]) -> CircuitEvent:
    values = dict(row._mapping)
    return CircuitEvent(**values | {"state": CircuitState(values["state"])})


FINISHED_KEPT = 100_000
"""Of newest numbers: fifty circuits a day for five years."""
EVENTS_KEPT = 200
NUMBERS_AT_ONCE = 500
_FINISHED = [state.value for state in FINISHED]
_OVERRIDE = ("overridden", "override_reason", "override_by")
