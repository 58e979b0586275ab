"""Requests for circuits: reserve, change and release; each can be tried without effect."""

import asyncio
from dataclasses import replace
from datetime import datetime
from itertools import count

from downburst.bus.port import Bus
from downburst.domain.circuits import (
    STANDING,
    Circuit,
    CircuitAnswer,
    CircuitChange,
    CircuitDriver,
    CircuitState,
    Port,
)
from downburst.domain.events import CircuitsChanged
from downburst.foundation.clock import Clock, from_us, to_us
from downburst.foundation.errors import AlreadyThere, BadInput, CircuitConflict, DownburstError
from downburst.foundation.rates import rate_text
from downburst.ledger import Ledger, Transaction
from downburst_circuits.calendar import NoRoom, Reservation
from downburst_circuits.controller import CircuitController
from downburst_circuits.desk.booking import NoPath
from downburst_circuits.desk.circuits import wanted_of, with_place
from downburst_circuits.lifecycle import Happening, check_cancellable, check_modifiable, said_of
from downburst_circuits.providers.makers import Makers
from downburst_circuits.questions import DeskService, no_path
from downburst_circuits.register import Register, Said
from downburst_circuits.requests import (
    check_port,
    check_rates,
    check_window,
    checked,
    conflict,
    moment_text,
    reservation_of,
    unknown_port,
)


class CircuitService:
    """Requests of people and programs for one hub's circuits and ports."""

    def __init__(
        self,
        register: Register,
        controller: CircuitController,
        makers: Makers,
        *,
        ledger: Ledger,
        bus: Bus,
        clock: Clock,
    ) -> None:
        self._register = register
        self._controller = controller
        self._makers = makers
        self._ledger = ledger
        self._bus = bus
        self._clock = clock
        self._places = count(1)
        self._one_at_a_time = asyncio.Lock()
        """Serialises equal concurrent requests, so that the second finds the first one's circuit."""
        self.desk = DeskService(register, ledger=ledger, bus=bus, clock=clock, one_at_a_time=self._one_at_a_time)

    async def request(self, wanted: Circuit, *, dry_run: bool = False) -> CircuitAnswer:
        """Reserves a circuit; the same request again gets the first circuit."""
        async with self._one_at_a_time:
            return await self._request(wanted, dry_run=dry_run)

    async def modify(self, number: int, change: CircuitChange, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Changes rate, end or burst, all or nothing: the old terms stay if the calendar or the node refuses."""
        before = await self._open(number)
        async with self._register.lock(number):
            circuit = self._register.open.get(number, before)
            check_modifiable(circuit)
            wanted = _changed(circuit, change)
            check_window(wanted, self._clock.now())
            check_rates(wanted, self._register.ports)
            self._fit(wanted, instead_of=circuit)
            if dry_run:
                return CircuitAnswer(wanted, done=False)
            return CircuitAnswer(await self._carry_out(circuit, wanted, by))

    async def cancel(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Releases a circuit; its built parts are removed."""
        circuit = await self._open(number)
        check_cancellable(circuit)
        if dry_run:
            return CircuitAnswer(circuit, done=False)
        said = Said(f"cancelled by {by}", by=by)
        moved = await self._register.happen(number, Happening.CANCEL, said)
        return CircuitAnswer(moved or circuit, done=moved is not None)

    async def clone(
        self, number: int, *, request_id: str, begin: datetime | None, by: str, dry_run: bool = False
    ) -> CircuitAnswer:
        """Reserves a copy of a circuit, with the same duration, from a given moment on (default now)."""
        before = await self._ledger.read(lambda tx: tx.circuits.one(number))
        start = begin or self._clock.now()
        wanted = replace(
            moved(before, start),
            number=0,
            request=replace(before.request, request_id=request_id, asked_sha256="", requested_by=by),
            path=(),
            ends=tuple(replace(end, vlan=None, address=_declared(before, end.address)) for end in before.ends),
            state=CircuitState.REQUESTED,
            reason="",
        )
        return await self.request(wanted, dry_run=dry_run)

    async def measure(self, number: int) -> Circuit:
        """Starts a measurement of a circuit."""
        circuit = await self._open(number)
        if circuit.state not in STANDING:
            raise BadInput(f"{said_of(circuit)}; it can be measured when it is up")
        self._controller.measure_soon(number)
        return circuit

    async def add_port(self, port: Port) -> Port:
        """Creates a port."""

        check_port(port)

        def write(tx: Transaction) -> Port:
            if port.site is not None:
                tx.sites.one(port.site)
            return tx.ports.add(port)

        return self._with(await self._ledger.write(write))

    async def change_port(self, port: Port) -> Port:
        """Changes a port, unless circuits on it would lose their reserved terms."""
        check_port(port)
        self._check_still_enough(port)

        def write(tx: Transaction) -> Port:
            kept = tx.ports.change(port)
            tx.planning.topology.check_ports()
            return kept

        return self._with(await self._ledger.write(write))

    async def remove_port(self, name: str) -> None:
        """Removes a port that no circuit uses."""
        if name not in self._register.ports:
            raise unknown_port(name, self._register.ports)
        users = [circuit.number for circuit in self._register.open.values() if _ends_at(circuit, name)]
        if users:
            raise AlreadyThere(
                f"port {name} is needed by {len(users)} circuits, such as {users[0]}; cancel them first",
                circuits=users,
            )

        def write(tx: Transaction) -> None:
            tx.planning.topology.check_free(name)
            tx.ports.remove(name)

        await self._ledger.write(write)
        del self._register.ports[name]
        self._register.calendar.forget(name)
        self._bus.publish(CircuitsChanged())

    async def _request(self, wanted: Circuit, *, dry_run: bool) -> CircuitAnswer:
        before, known = await self._register.asked_before(wanted)
        if before is not None:
            return CircuitAnswer(_same(before, wanted), done=False)
        fitting = self._place(checked(wanted, known))
        if dry_run:
            return CircuitAnswer(replace(fitting, state=CircuitState.REQUESTED), done=False)
        return CircuitAnswer(await self._admit(fitting))

    async def _open(self, number: int) -> Circuit:
        if number in self._register.open:
            return self._register.open[number]
        return await self._ledger.read(lambda tx: tx.circuits.one(number))

    def _place(self, circuit: Circuit) -> Circuit:
        """The circuit with the path and the tags that the calendar has room for."""
        register = self._register
        wanted, asked = wanted_of(circuit, register.ports, register.network), reservation_of(circuit, register.ports)
        try:
            return with_place(circuit, register.desk.book(wanted, asked.begin_us, asked.end_us))
        except NoPath:
            raise no_path(circuit) from None
        except NoRoom as refused:
            near = register.desk.nearest(wanted, asked.begin_us, asked.end_us, to_us(self._clock.now()))
            nearest = None if near is None else moved(circuit, from_us(near.reservation.begin_us))
            raise conflict(circuit, refused.clash, register.open, nearest=nearest) from None

    def _fit(self, circuit: Circuit, *, instead_of: Circuit) -> Reservation:
        try:
            return self._register.calendar.fit_instead(self._register.reservation(circuit))
        except NoRoom as refused:
            raise conflict(circuit, refused.clash, self._register.open, instead_of=instead_of) from None

    async def _admit(self, circuit: Circuit) -> Circuit:
        """Holds the place in the calendar during the write to the ledger, so that no other request gets it."""
        calendar = self._register.calendar
        place = replace(self._register.reservation(circuit), number=-next(self._places))
        calendar.put(place)
        try:
            said = Said(_admitted(circuit), by=circuit.request.requested_by)
            return await self._register.keep_new(circuit, said)
        finally:
            calendar.remove(place.number)

    async def _carry_out(self, circuit: Circuit, wanted: Circuit, by: str) -> Circuit:
        try:
            with self._register.promising(wanted):
                if circuit.state is not CircuitState.ADMITTED:
                    await self._makers.of(circuit).change(circuit, wanted)
                said = Said(_modified(circuit, wanted), by=by)
                kept = await self._register.change(
                    circuit.number, lambda now: _with_terms(now, wanted), Happening.MODIFIED.value, said
                )
                return kept or wanted
        except DownburstError as error:
            said = Said(f"the change requested by {by} was not made: {error.sentence}", by=by)
            await self._register.note(circuit, Happening.MODIFIED.value, said)
            raise

    def _check_still_enough(self, port: Port) -> None:
        users = [circuit for circuit in self._register.open.values() if _ends_at(circuit, port.name)]
        needed = self._register.calendar.most_bps(port.name) if users else 0
        if needed > port.rate_bps:
            raise CircuitConflict(
                f"port {port.name} can't be set to {rate_text(port.rate_bps)}: circuits hold up to "
                f"{rate_text(needed)} of it; cancel or modify some first",
                circuits=[{"circuit": circuit.number} for circuit in users],
            )
        known = self._register.ports.get(port.name)
        if users and known is not None and _place(known) != _place(port):
            raise BadInput(
                f"port {port.name} is needed by circuit {users[0].number}, so it keeps its host and interface; "
                "cancel that first, or add another port"
            )

    def _with(self, port: Port) -> Port:
        self._register.ports[port.name] = port
        self._register.calendar.capacity(port.name, port.rate_bps)
        self._bus.publish(CircuitsChanged())
        return port


def _same(before: Circuit, wanted: Circuit) -> Circuit:
    if before.request.asked_sha256 == wanted.request.asked_sha256:
        return before
    raise AlreadyThere(
        f"the request {wanted.request.request_id!r} made circuit {before.number} and differs from it now; use "
        "another request id, or modify that circuit",
        circuit=before.number,
    )


def _changed(circuit: Circuit, change: CircuitChange) -> Circuit:
    burst_bytes = circuit.carriage.burst_bytes if change.burst_bytes is None else change.burst_bytes
    wanted = replace(
        circuit,
        rate_out_bps=circuit.rate_out_bps if change.rate_out_bps is None else change.rate_out_bps,
        rate_in_bps=circuit.rate_in_bps if change.rate_in_bps is None else change.rate_in_bps,
        end=None if change.until_cancelled else change.end or circuit.end,
        carriage=replace(circuit.carriage, burst_bytes=burst_bytes),
    )
    if wanted == circuit:
        raise BadInput("nothing would change; name a rate, an end or a burst that differs")
    return wanted


def _with_terms(now: Circuit, wanted: Circuit) -> Circuit:
    """The circuit in its present state, with the requested terms."""
    check_modifiable(now)
    return replace(
        now,
        rate_out_bps=wanted.rate_out_bps,
        rate_in_bps=wanted.rate_in_bps,
        end=wanted.end,
        carriage=replace(now.carriage, burst_bytes=wanted.carriage.burst_bytes),
    )


def _declared(circuit: Circuit, address: str | None) -> str | None:
    return address if circuit.carriage.driver is CircuitDriver.DECLARED else None


def moved(circuit: Circuit, begin: datetime) -> Circuit:
    """The circuit in a window of the same length with another begin."""
    return replace(circuit, begin=begin, end=None if circuit.end is None else begin + (circuit.end - circuit.begin))


def _place(port: Port) -> tuple[str | None, str | None, str]:
    """The host and the interface of a port."""
    return port.site, port.sender, port.interface


def _ends_at(circuit: Circuit, port: str) -> bool:
    return any(end.port == port for end in circuit.ends)


def _admitted(circuit: Circuit) -> str:
    until = "until it is cancelled" if circuit.end is None else f"to {moment_text(circuit.end)}"
    out, back = rate_text(circuit.rate_out_bps), rate_text(circuit.rate_in_bps)
    far = ", ".join(circuit.far_sites)
    rates = f"{out} to and {back} from {far}"
    if circuit.near_site is not None:
        rates = f"{out} from {circuit.near_site} to {far} and {back} back"
    return f"{rates} are reserved from {moment_text(circuit.begin)} {until}"


def _modified(circuit: Circuit, wanted: Circuit) -> str:
    changes = []
    if wanted.rate_out_bps != circuit.rate_out_bps:
        changes.append(f"out {rate_text(circuit.rate_out_bps)} -> {rate_text(wanted.rate_out_bps)}")
    if wanted.rate_in_bps != circuit.rate_in_bps:
        changes.append(f"in {rate_text(circuit.rate_in_bps)} -> {rate_text(wanted.rate_in_bps)}")
    if wanted.end != circuit.end:
        changes.append(f"end {moment_text(circuit.end)} -> {moment_text(wanted.end)}")
    before, after = circuit.carriage.burst_bytes, wanted.carriage.burst_bytes
    if after != before:
        changes.append(f"burst {before or 'by the node'} -> {after} bytes")
    return ", ".join(changes)
