"""Requests for circuits: reserve, change and release; each can be tried without effect."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count

from downburst.bus.port import Bus
from downburst.domain.circuits import (
    STANDING,
    WANTED,
    Circuit,
    CircuitAnswer,
    CircuitChange,
    CircuitDriver,
    CircuitState,
    Port,
)
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.foundation.clock import Clock, from_us, to_us
from downburst.foundation.errors import AlreadyThere, BadInput, CircuitConflict, DownburstError
from downburst.foundation.rates import rate_text
from downburst.ledger import Ledger, Transaction
from downburst_circuits.calendar import Clash, NoRoom, Reservation
from downburst_circuits.controller import CircuitController
from downburst_circuits.desk.booking import NoPath, Wanted
from downburst_circuits.desk.circuits import check_wish, wanted_of, with_place
from downburst_circuits.desk.trees import has_tree
from downburst_circuits.leaves import LeafService, with_tree
from downburst_circuits.lifecycle import (
    Happening,
    after,
    check_cancellable,
    check_committable,
    check_creatable,
    check_has_path,
    check_modifiable,
    in_state,
    said_of,
)
from downburst_circuits.providers.makers import Makers
from downburst_circuits.questions import DeskService, no_path
from downburst_circuits.register import Register, Said
from downburst_circuits.requests import (
    check_port,
    check_rates,
    check_window,
    checked,
    conflict,
    reservation_of,
    unknown_port,
)
from downburst_circuits.terms import (
    admitted_sentence,
    changed,
    check_hold,
    copied,
    modified_sentence,
    moved,
    override_sentence,
    same,
    with_override,
    with_terms,
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
        """Serialises equal requests, so that the second finds the first one's circuit, and changes of the calendar.

        Taken after the lock of a circuit, never before.
        """
        self.tests = controller.tests
        self.leaves = LeafService(
            register, controller, makers, ledger=ledger, clock=clock, one_at_a_time=self._one_at_a_time
        )
        self.desk = DeskService(register, ledger=ledger, bus=bus, clock=clock, one_at_a_time=self._one_at_a_time)

    async def request(self, wanted: Circuit, hold_s: float | None = None, *, dry_run: bool = False) -> CircuitAnswer:
        """Reserves a circuit, or holds it for some seconds until a commit; the same request again gets the first one.

        A hold lasts at most `MOST_HOLD_S`.
        """
        check_hold(hold_s)
        async with self._one_at_a_time:
            answer = await self._request(wanted, hold_s, dry_run=dry_run)
        if answer.circuit.state is CircuitState.HELD:
            await self._elsewhere(answer.circuit, self._makers.of(answer.circuit).hold, DownburstError)
        return answer

    async def commit(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Makes a held circuit a reservation; one that is reserved already stays so."""

        def check(circuit: Circuit) -> None:
            check_committable(circuit, to_us(self._clock.now()))

        circuit = await self._open(number)
        if circuit.state is CircuitState.HELD and not dry_run:
            check(circuit)
            # Without a word of the maker it may be committed there: the hold goes on, for another try.
            await self._elsewhere(circuit, self._makers.of(circuit).commit, CircuitConflict)
        said = Said(f"committed by {by}", by=by)
        return await self._move(number, Happening.COMMIT, said, check, dry_run=dry_run)

    async def create_path(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Has the path of a waiting circuit set up; one that has a path keeps it."""
        said = Said(f"its path is created, as {by} asked", by=by)
        return await self._move(number, Happening.CREATE, said, check_creatable, dry_run=dry_run)

    async def tear_down_path(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Removes the path of a circuit, which stays reserved and waits; one that waits already goes on waiting."""
        said = Said(f"its path is torn down, as {by} asked", by=by)
        return await self._move(number, Happening.TEAR_DOWN, said, check_has_path, dry_run=dry_run)

    async def override(
        self, number: int, state: CircuitState | None, reason: str = "", *, by: str, dry_run: bool = False
    ) -> CircuitAnswer:
        """Shows a circuit as active or down whatever its probes say, until that is cleared by None.

        Feeds leave one that is overridden as down. An override to active gives feeds nothing that probes refuse.
        """
        circuit = await self._open(number)
        wanted = with_override(circuit, state, reason, by)
        if dry_run or wanted.override == circuit.override:
            return CircuitAnswer(wanted, done=False)
        said = Said(override_sentence(circuit, wanted, reason, by), by=by)
        kept = await self._register.change(
            number, lambda now: with_override(now, state, reason, by), Happening.OVERRIDDEN.value, said
        )
        return CircuitAnswer(kept or await self._open(number), done=kept is not None)

    async def modify(self, number: int, change: CircuitChange, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Changes rate, window or burst, all or nothing: the old terms stay if the calendar or the node refuses."""
        await self._open(number)
        async with self._register.lock(number):
            circuit = await self._open(number)
            check_modifiable(circuit)
            with ExitStack() as promise:
                # Not while the topology changes or a request is admitted; the node's part takes longer.
                async with self._one_at_a_time:
                    agreed = partial(self._agreed, circuit, change)
                    wanted = self.tests.cleared(agreed, for_good=not dry_run)
                    if dry_run:
                        return CircuitAnswer(wanted, done=False)
                    promise.enter_context(self._register.promising(wanted))
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
        wanted = copied(before, begin or self._clock.now(), request_id=request_id, by=by)
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

    async def _request(self, wanted: Circuit, hold_s: float | None, *, dry_run: bool) -> CircuitAnswer:
        before, known = await self._register.asked_before(wanted)
        if before is not None:
            return CircuitAnswer(same(before, wanted), done=False)
        asked = checked(wanted, known)
        fitting = self.tests.cleared(lambda: self._place(asked), for_good=not dry_run)
        if dry_run:
            return CircuitAnswer(replace(fitting, state=CircuitState.REQUESTED), done=False)
        held_until = None if hold_s is None else self._clock.now() + timedelta(seconds=hold_s)
        return CircuitAnswer(await self._admit(replace(fitting, held_until=held_until)))

    async def _elsewhere(
        self, circuit: Circuit, step: Callable[[Circuit], Awaitable[None]], refusal: type[DownburstError]
    ) -> None:
        """Holds or commits a circuit at its maker; if that refuses, nothing of it is held here either."""
        try:
            await step(circuit)
        except refusal as error:
            await self._register.happen(circuit.number, Happening.CANCEL, Said(error.sentence))
            raise

    async def _move(
        self,
        number: int,
        happening: Happening,
        said: Said,
        check: Callable[[Circuit], None],
        *,
        dry_run: bool,
    ) -> CircuitAnswer:
        """Moves a circuit on, unless it was moved before or the check refuses."""
        circuit = await self._open(number)
        check(circuit)
        state = after(circuit.state, happening)
        if state is None or dry_run:
            return CircuitAnswer(in_state(circuit, state or circuit.state), done=False)
        kept = await self._register.happen(number, happening, said, check)
        if kept is None:
            circuit = await self._open(number)
            check(circuit)
        return CircuitAnswer(kept or circuit, done=kept is not None)

    async def _open(self, number: int) -> Circuit:
        if number in self._register.open:
            return self._register.open[number]
        return await self._ledger.read(lambda tx: tx.circuits.one(number))

    def _place(self, circuit: Circuit) -> Circuit:
        """The circuit with the path and the tags that the calendar has room for."""
        register = self._register
        check_wish(circuit, register.network)
        wanted, asked = wanted_of(circuit, register.ports, register.network), reservation_of(circuit, register.ports)
        if has_tree(circuit, register.network):
            return self._place_tree(circuit)
        try:
            return with_place(circuit, register.desk.book(wanted, asked.begin_us, asked.end_us))
        except NoPath:
            raise no_path(circuit) from None
        except NoRoom as refused:
            raise self._refusal(circuit, wanted, refused.clash) from None

    def _refusal(self, circuit: Circuit, wanted: Wanted, clash: Clash) -> DownburstError:
        """The refusal with the nearest window, if there is one; ports may be full that no path joins either."""
        register, asked = self._register, reservation_of(circuit, self._register.ports)
        try:
            near = register.desk.nearest(wanted, asked.begin_us, asked.end_us, to_us(self._clock.now()))
        except NoPath:
            return no_path(circuit)
        nearest = None if near is None else moved(circuit, from_us(near.reservation.begin_us))
        return conflict(circuit, clash, register.holders, nearest=nearest)

    def _agreed(self, circuit: Circuit, change: CircuitChange) -> Circuit:
        """The circuit with a change that the calendar has room for."""
        wanted = changed(circuit, change, self._clock.now())
        check_window(wanted, self._clock.now())
        check_rates(wanted, self._register.ports)
        self._fit(wanted, instead_of=circuit)
        return wanted

    def _place_tree(self, circuit: Circuit) -> Circuit:
        """As `_place`, for a circuit with a path to each of several sites."""
        try:
            return with_tree(circuit, self._register)
        except NoRoom as refused:
            raise conflict(circuit, refused.clash, self._register.holders) from None

    def _fit(self, circuit: Circuit, *, instead_of: Circuit) -> Reservation:
        try:
            return self._register.calendar.fit_instead(self._register.reservation(circuit))
        except NoRoom as refused:
            raise conflict(circuit, refused.clash, self._register.holders, instead_of=instead_of) from None

    async def _admit(self, circuit: Circuit) -> Circuit:
        """Holds the place in the calendar during the write to the ledger, so that no other request gets it."""
        calendar = self._register.calendar
        place = replace(self._register.reservation(circuit), number=-next(self._places))
        calendar.put(place)
        try:
            said = Said(admitted_sentence(circuit), by=circuit.request.requested_by)
            return await self._register.keep_new(circuit, said)
        finally:
            calendar.remove(place.number)

    async def _carry_out(self, circuit: Circuit, wanted: Circuit, by: str) -> Circuit:
        try:
            if circuit.state in WANTED or circuit.carriage.driver is CircuitDriver.NSI:
                # Another network may have reserved it before its window begins.
                await self._makers.of(circuit).change(circuit, wanted)
            said = Said(modified_sentence(circuit, wanted), by=by)
            kept = await self._register.change(
                circuit.number, lambda now: with_terms(now, wanted), Happening.MODIFIED.value, said
            )
        except DownburstError as error:
            said = Said(f"the change requested by {by} was not made: {error.sentence}", by=by)
            await self._register.note(circuit, Happening.MODIFIED.value, said)
            raise
        return kept or wanted

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
        if users and known is not None and _attached_to(known) != _attached_to(port):
            raise BadInput(
                f"port {port.name} is needed by circuit {users[0].number}, so it keeps its host and interface; "
                "cancel that first, or add another port"
            )

    def _with(self, port: Port) -> Port:
        self._register.ports[port.name] = port
        self._register.calendar.capacity(port.name, port.rate_bps)
        self._bus.publish(CircuitsChanged())
        return port


def _attached_to(port: Port) -> tuple[str | None, str | None, str]:
    """The host and the interface of a port."""
    return port.site, port.sender, port.interface


def _ends_at(circuit: Circuit, port: str) -> bool:
    return any(end.port == port for end in circuit.ends)
