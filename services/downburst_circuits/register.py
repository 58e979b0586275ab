"""All unfinished circuits, with the calendar, in memory; every change passes through here into the ledger.

One hub process writes circuits, so the ledger is read once, at the start.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from downburst.bus.port import Bus
from downburst.domain.circuits import (
    FINISHED,
    LEAVING,
    UPCOMING,
    Circuit,
    CircuitEvent,
    CircuitState,
    Lease,
    Measured,
    Port,
)
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.events import FaultSeen
from downburst.domain.faults import Fault
from downburst.domain.topology import Topology
from downburst.foundation.clock import Clock
from downburst.foundation.errors import NotFound
from downburst.ledger import Ledger, Transaction
from downburst_circuits.calendar import Calendar, Reservation
from downburst_circuits.desk.booking import Desk
from downburst_circuits.desk.circuits import covering, placed
from downburst_circuits.desk.network import Network
from downburst_circuits.desk.wire import wired
from downburst_circuits.lifecycle import Happening, after, in_state
from downburst_circuits.requests import Holders, Known


@dataclass(frozen=True, slots=True)
class Said:
    """The text of an event."""

    sentence: str
    step: str = ""
    hop: str = ""
    remedy: str = ""
    by: str = "hub"


class Register:
    """The open circuits of one hub."""

    def __init__(self, ledger: Ledger, bus: Bus, clock: Clock) -> None:
        self._ledger = ledger
        self._bus = bus
        self._clock = clock
        self.ports: dict[str, Port] = {}
        self.open: dict[int, Circuit] = {}
        self.begun: dict[int, Circuit] = {}
        """Open circuits with a window that has begun."""
        self.holders = Holders(self.open, {})
        """All that a refusal may name: the open circuits, and the running tests of `bookings`."""
        self.calendar = Calendar({})
        self.network = Network(Topology(), self.ports)
        self.watchers: list[Callable[[Circuit], None]] = []
        """Called with every changed circuit."""
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._writing = asyncio.Lock()
        self._promised: dict[int, Reservation] = {}

    async def load(self) -> None:
        """Loads the circuits from the ledger."""
        ports, circuits, topology = await self._ledger.read(
            lambda tx: (tx.ports.all(), tx.circuits.unfinished(), tx.planning.topology.get())
        )
        self.ports = {port.name: port for port in ports}
        self.network, self.calendar = Network(topology, self.ports), Calendar({})
        self.calendar = self.calendar_over(self.network)
        self.open.clear()
        self.begun.clear()
        for circuit in circuits:
            self._remember(circuit)

    @property
    def desk(self) -> Desk:
        """Questions to the calendar over the topology."""
        return Desk(self.calendar, self.network)

    def reservation(self, circuit: Circuit) -> Reservation:
        """A circuit's reservation in the calendar: its ports, their hosts and the links of its path."""
        return placed(circuit, self.ports, self.network)

    def calendar_over(self, network: Network) -> Calendar:
        """The calendar of all present reservations over another topology."""
        calendar = Calendar({port.name: port.rate_bps for port in self.ports.values()})
        network.put_into(calendar)
        for kept in self.calendar.reservations():
            circuit = None if kept.number in self._promised else self.open.get(kept.number)
            calendar.put(kept if circuit is None else placed(circuit, self.ports, network))
        return calendar

    def take(self, network: Network) -> None:
        """Replaces the topology."""
        self.calendar, self.network = self.calendar_over(network), network

    async def asked_before(self, wanted: Circuit) -> tuple[Circuit | None, Known]:
        """The circuit of an earlier equal request, and the facts to check a new one by: the sites that it names."""
        ports = (self.ports.get(end.port) for end in wanted.ends)
        names = {end.site for end in wanted.ends} | {port.site for port in ports if port is not None}

        def read(tx: Transaction) -> tuple[Circuit | None, Known]:
            found = [tx.sites.find(name) for name in names if name]
            sites = {site.name: site for site in found if site}
            provider = wanted.carriage.provider and tx.planning.providers.find(wanted.carriage.provider)
            return tx.circuits.of_request(wanted.request.request_id), Known(
                self.ports, sites, self._clock.now(), provider or None, self.network.foreign
            )

        return await self._ledger.read(read)

    async def known(self) -> Known:
        """All ports and sites at this moment."""
        sites = await self._ledger.read(lambda tx: tx.sites.all())
        named = {site.name: site for site in sites}
        return Known(self.ports, named, self._clock.now(), foreign=self.network.foreign)

    def lock(self, number: int) -> asyncio.Lock:
        """The lock of work on a circuit, which serialises it."""
        return self._locks[number]

    def lease(self, circuit: Circuit) -> Lease:
        """The lease of a circuit for the node."""
        missing = next((end.port for end in circuit.ends if end.port not in self.ports), None)
        if missing is not None:
            raise NotFound(f"the port {missing} of circuit {circuit.number} was removed; add it again")
        return wired(circuit, self.network)

    async def keep_new(self, circuit: Circuit, said: Said) -> Circuit:
        """Stores a circuit that the calendar has room for, held or admitted, under a number of its own."""
        is_held = circuit.held_until is not None
        state, event = (CircuitState.HELD, Happening.HOLD) if is_held else (CircuitState.ADMITTED, Happening.ADMIT)

        def write(tx: Transaction) -> Circuit:
            kept = tx.circuits.add(replace(circuit, state=state, reason=said.sentence))
            tx.circuits.note(self._event(kept, event.value, said), first=True)
            return kept

        kept = await self._ledger.write(write)
        self._remember(kept)
        self._tell(kept)
        return kept

    async def happen(
        self, number: int, happening: Happening, said: Said, check: Callable[[Circuit], None] | None = None
    ) -> Circuit | None:
        """Moves an open circuit on; None if the event has no effect in its state. The check may refuse by raising.

        An event with neither a new state nor a new reason is not stored again.
        """

        def moved(circuit: Circuit) -> Circuit | None:
            if check is not None:
                check(circuit)
            state = after(circuit.state, happening)
            if state is None:
                return None
            since = circuit.since if state is circuit.state else self._clock.now()
            return replace(in_state(circuit, state), reason=_reason(happening, said), since=since)

        return await self.change(number, moved, happening.value, said)

    async def change(
        self, number: int, update: Callable[[Circuit], Circuit | None], event: str, said: Said
    ) -> Circuit | None:
        """Changes an open circuit as it is now, with the event as the reason; None if the update changes nothing."""
        async with self._writing:
            before = self.open.get(number)
            circuit = update(before) if before is not None else None
            if circuit is None or circuit == before:
                return circuit
            await self._ledger.write(lambda tx: self._write(tx, circuit, event, said))
            self._remember(circuit)
        log = _LOG.warning if said.remedy else _LOG.info
        log("circuit %d is %s: %s", number, circuit.state, said.sentence)
        self._tell(circuit)
        return circuit

    @contextmanager
    def promising(self, circuit: Circuit) -> Iterator[None]:
        """Reserves a circuit's future terms in the calendar until they are applied, whatever changes in between.

        The present terms stay reserved as well, as the circuit falls back to them if the future ones are refused.
        Within another promise for the circuit, that one counts again afterwards.
        """
        number, outer = circuit.number, self._promised.get(circuit.number)
        both = covering(self.reservation(self.open[number]), self.calendar.exchange(self.reservation(circuit)))
        self.calendar.remove(number)
        self.calendar.put(both)
        self._promised[number] = both
        try:
            yield
        finally:
            del self._promised[number]
            if outer is not None:
                self._promised[number] = outer
            now = self.open.get(number)
            if now is not None:
                self._remember(now)

    @contextmanager
    def growing(self, circuit: Circuit) -> Iterator[None]:
        """As `promising`, for a circuit with a further end that the calendar is known to have room for."""
        number, place = circuit.number, self.reservation(circuit)
        self.calendar.remove(number)
        self.calendar.put(place)
        self._promised[number] = place
        try:
            yield
        finally:
            del self._promised[number]
            if number in self.open:
                self._remember(self.open[number])

    async def note(self, circuit: Circuit, event: str, said: Said) -> None:
        """Stores an event without a change."""
        kept = self._event(circuit, event, said)
        await self._ledger.write(lambda tx: tx.circuits.note(kept))

    async def fault(self, sentence: str) -> None:
        """Reports a fault of circuits as a whole to the operator."""
        fault = Fault(self._clock.now(), sentence, next_step="downburst circuits list")
        _LOG.warning("%s", sentence)
        await self._ledger.write(lambda tx: tx.measured.faults.add(fault))
        self._bus.publish(FaultSeen(fault.at, sentence, next_step=fault.next_step))

    async def measured(self, circuit: Circuit, rows: list[Measured]) -> None:
        """Stores measurements."""
        await self._ledger.write(lambda tx: tx.circuits.measured(rows))
        self._tell(circuit)

    def _remember(self, circuit: Circuit) -> None:
        """Updates the memory; a circuit in removal no longer occupies rate and tags."""
        number = circuit.number
        self.calendar.remove(number)
        for kept in (self.open, self.begun):
            kept.pop(number, None)
        if circuit.state in FINISHED:
            self._locks.pop(number, None)
            return
        self.open[number] = circuit
        if circuit.state not in UPCOMING:
            self.begun[number] = circuit
        if circuit.state not in LEAVING:
            self.calendar.put(self._promised.get(number) or self.reservation(circuit))

    def _write(self, tx: Transaction, circuit: Circuit, event: str, said: Said) -> None:
        tx.circuits.save(circuit)
        tx.circuits.note(self._event(circuit, event, said))

    def _event(self, circuit: Circuit, event: str, said: Said) -> CircuitEvent:
        return CircuitEvent(
            circuit=circuit.number,
            at=self._clock.now(),
            event=event,
            state=circuit.state,
            sentence=said.sentence,
            step=said.step,
            hop=said.hop,
            remedy=said.remedy,
            by=said.by,
        )

    def _tell(self, circuit: Circuit) -> None:
        for watcher in self.watchers:
            watcher(circuit)
        self._bus.publish(CircuitsChanged(circuit.number))


def _reason(happening: Happening, said: Said) -> str:
    """A circuit that carries its reserved rate needs no reason."""
    return "" if happening is Happening.PASSED else said.sentence


_LOG = logging.getLogger("downburst.circuits")
