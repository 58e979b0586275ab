"""Acknowledged requests carried out over the calendar, and circuits compared with what requesters were told.

Each step may be repeated by the next process: a circuit is found again by the connection's name, and a commit that
was made shows in the circuit's state.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import uuid4

from downburst.domain.circuits import FINISHED, UPCOMING, WANTED, Circuit, CircuitState
from downburst.foundation.clock import Clock, to_us
from downburst.foundation.errors import DownburstError, LedgerAway
from downburst.ledger import Ledger
from downburst.supervision import attempt, start
from downburst_circuits.calendar import NoRoom
from downburst_circuits.nsi.words import (
    Confirmed,
    Failed,
    LifecycleState,
    Notice,
    Operation,
    ProvisionState,
    Reply,
    ReservationState,
    Reserved,
)
from downburst_circuits.provider_agent import machine, noticing, wishes
from downburst_circuits.provider_agent.book import Book, Changed, Tell, Telling
from downburst_circuits.provider_agent.record import Connection, Pending, Terms
from downburst_circuits.provider_agent.refusals import ErrorId, NsiRefusal, refusal_of
from downburst_circuits.register import Register
from downburst_circuits.requests import conflict
from downburst_circuits.service import CircuitService


@dataclass(frozen=True, slots=True)
class Circuits:
    """The circuits of a hub, as its provider agent needs them."""

    service: CircuitService
    register: Register
    ledger: Ledger
    clock: Clock


class Carrier:
    """The work on all connections, one step at a time for each."""

    def __init__(
        self, book: Book, circuits: Circuits, *, nsa: str, hold_s: float, told: Callable[[Changed], None]
    ) -> None:
        self._book = book
        self._service = circuits.service
        self._register = circuits.register
        self._ledger = circuits.ledger
        self._clock = circuits.clock
        self._nsa = nsa
        self._hold_s = hold_s
        self._told = told
        self._due: dict[str, float] = {}
        """By connection the earliest moment of its next step, in seconds of the monotonic clock."""
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._promises: dict[str, ExitStack] = {}
        """The room that held changes of terms have in the calendar."""
        self._all_at_s = 0.0
        self._wake = asyncio.Event()
        circuits.register.watchers.append(self._seen)

    def begin(self) -> None:
        """Continues all connections; what a change held before gets its room again, or times out."""
        self._all_at_s = self._clock.monotonic_s() + ALL_S
        for one in self._book.open():
            self.soon(one.connection_id)

    def soon(self, connection_id: str) -> None:
        """Has a connection looked at immediately."""
        self._due[connection_id] = 0.0
        self._wake.set()

    async def run(self) -> None:
        """Works until cancelled."""
        try:
            while True:
                self._wake.clear()
                self.tick()
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S):
                        await self._wake.wait()
        finally:
            tasks = list(self._at_work.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def tick(self) -> None:
        """Starts the steps that are due."""
        now_s, now_us = self._clock.monotonic_s(), self._now_us()
        if now_s >= self._all_at_s:
            # Those that nothing happens to are dropped after a day.
            self.begin()
        for one in self._book.open():
            if one.held_until_us is not None and one.held_until_us <= now_us:
                self._due.setdefault(one.connection_id, 0.0)
        for connection_id, due_s in list(self._due.items()):
            if due_s <= now_s and connection_id not in self._at_work and len(self._at_work) < AT_ONCE:
                self._due.pop(connection_id)
                self._start(connection_id)

    async def idle(self) -> None:
        """Waits for the steps under way."""
        while self._at_work:
            await asyncio.gather(*self._at_work.values())

    def _start(self, connection_id: str) -> None:
        # Until it has succeeded, so that an unknown error is followed by another attempt.
        again_s = self._due[connection_id] = self._clock.monotonic_s() + AGAIN_S
        work = attempt("circuits.nsi-step", lambda: self._step(connection_id, again_s), what=connection_id)
        task = start("circuits.nsi-step", work)
        self._at_work[connection_id] = task
        task.add_done_callback(lambda _: self._at_work.pop(connection_id, None))
        task.add_done_callback(lambda _: self._wake.set())

    async def _step(self, connection_id: str, again_s: float) -> None:
        try:
            await self._carry_all(connection_id)
            await self._compare(connection_id)
        except DownburstError as error:
            _LOG.warning("the NSI connection %s is looked at again: %s", connection_id, error.sentence)
            return
        # A change in the meantime has made it due earlier.
        if self._due.get(connection_id) == again_s:
            del self._due[connection_id]

    async def _carry_all(self, connection_id: str) -> None:
        """Does what was asked for, in order, until something has to wait for its circuit."""
        while (one := self._book.get(connection_id)) is not None and one.pending:
            if await self._carry(one, one.pending[0]):
                return

    async def _carry(self, one: Connection, pending: Pending) -> bool:
        """Does a request; true if it has to wait for its circuit."""
        match pending.operation:
            case Operation.RESERVE:
                await (self._reserve if one.committed is None else self._hold_change)(one, pending)
            case Operation.COMMIT:
                await self._commit(one, pending)
            case Operation.ABORT:
                await self._abort(one, pending)
            case Operation.TERMINATE:
                return not await self._terminate(one, pending)
            case _:
                await self._confirm(one, pending, _provisioned if _is_provision(pending) else _released)
        return False

    async def _reserve(self, one: Connection, pending: Pending) -> None:
        terms = one.asked
        if terms is None or one.reservation is not ReservationState.CHECKING:
            await self._change(one, lambda now: machine.done(now, pending))
            return
        try:
            wish = wishes.circuit_of(one, terms, self._register.ports)
            circuit = (await self._service.request(wish, hold_s=self._hold_s)).circuit
            if circuit.state is not CircuitState.HELD or circuit.held_until is None:
                raise NsiRefusal(ErrorId.UNAVAILABLE, f"the hold of circuit {circuit.number} is over; reserve again")
            service = wishes.granted(one.service, circuit, self._register.ports)
        except LedgerAway:
            raise
        except DownburstError as error:
            await self._refuse(one, pending, error, machine.refused)
            return
        number, until_us = circuit.number, to_us(circuit.held_until)
        await self._change(
            one,
            lambda now: machine.done(machine.held(now, number, service, terms, until_us), pending),
            lambda now: [_reply(pending, Reserved(now.connection_id, now.told_of(terms)))],
        )

    async def _hold_change(self, one: Connection, pending: Pending) -> None:
        terms, number = one.asked, one.circuit
        if terms is None or number is None or one.reservation is not ReservationState.CHECKING:
            await self._change(one, lambda now: machine.done(now, pending))
            return
        try:
            circuit = self._open(number)
            if not wishes.has_terms(circuit, terms):
                change, by = wishes.change_of(terms), wishes.requested_by(one)
                wishes.check(wishes.with_terms(circuit, terms), self._register.ports, self._clock.now())
                await self._service.modify(number, change, by=by, dry_run=True)
                self._promise(one, self._open(number), terms)
        except LedgerAway:
            raise
        except DownburstError as error:
            await self._refuse(one, pending, error, machine.refused)
            return
        until_us = to_us(self._clock.now() + timedelta(seconds=self._hold_s))
        await self._change(
            one,
            lambda now: machine.done(machine.held(now, number, now.service, terms, until_us), pending),
            lambda now: [_reply(pending, Reserved(now.connection_id, now.told_of(terms)))],
        )

    async def _commit(self, one: Connection, pending: Pending) -> None:
        terms, number, by = one.asked, one.circuit, wishes.requested_by(one)
        try:
            if terms is None or number is None:
                raise NsiRefusal(ErrorId.TRANSITION, "nothing is held; reserve first")
            circuit = await self._circuit(number)
            if one.committed is not None:
                if not wishes.has_terms(circuit, terms):
                    await self._service.modify(number, wishes.change_of(terms), by=by)
            elif circuit.state is CircuitState.HELD or circuit.state in FINISHED:
                await self._service.commit(number, by=by)
        except LedgerAway:
            raise
        except DownburstError as error:
            is_first = one.committed is None
            await self._refuse(one, pending, error, machine.timed_out if is_first else machine.fallen_back)
            self._release_promise(one)
            return
        await self._confirm(one, pending, machine.committed)
        self._release_promise(one)

    async def _abort(self, one: Connection, pending: Pending) -> None:
        if one.committed is None:
            await self._cancel(one)
        self._release_promise(one)
        await self._confirm(one, pending, machine.fallen_back)

    async def _terminate(self, one: Connection, pending: Pending) -> bool:
        """True when nothing is left of the circuit."""
        self._release_promise(one)
        if not await self._cancel(one):
            return False
        await self._confirm(one, pending, noticing.terminated)
        return True

    async def _cancel(self, one: Connection) -> bool:
        """Gives the circuit back; true if it is finished."""
        circuit = await self._of(one)
        if circuit is None or circuit.state in FINISHED:
            return True
        answer = await self._service.cancel(circuit.number, by=wishes.requested_by(one))
        return answer.circuit.state in FINISHED

    async def _compare(self, connection_id: str) -> None:
        """Tells the requester of changes of the circuit, and creates or tears down its path as it was provisioned."""
        one = self._book.get(connection_id)
        if one is None or machine.is_over(one):
            return
        circuit = await self._of(one)
        now_us = self._now_us()
        if one.reservation is ReservationState.HELD and (one.held_until_us or 0) <= now_us:
            await self._time_out(one)
        elif one.reservation is ReservationState.HELD and one.committed is not None:
            await self._promise_again(one, circuit)
        for found in noticing.noticed(one, circuit, self._nsa, now_us):
            await self._change(one, found.update, partial(_notices, found.notice))
        one = self._book.get(connection_id) or one
        if circuit is not None:
            await self._path(one, circuit)

    async def _path(self, one: Connection, circuit: Circuit) -> None:
        wanted = one.provision is ProvisionState.PROVISIONED and one.lifecycle is LifecycleState.CREATED
        by = wishes.requested_by(one)
        if wanted and circuit.state is CircuitState.WAITING:
            await self._service.create_path(circuit.number, by=by)
        elif not wanted and one.lifecycle is LifecycleState.CREATED and circuit.state in WANTED:
            await self._service.tear_down_path(circuit.number, by=by)

    async def _time_out(self, one: Connection) -> None:
        if one.committed is None:
            await self._cancel(one)
        self._release_promise(one)
        seconds = round(self._hold_s)
        await self._change(one, machine.timed_out, lambda now: _notices(noticing.expired(now, seconds), now))

    def _promise(self, one: Connection, circuit: Circuit, terms: Terms) -> None:
        """Takes room for the present and the coming terms together."""
        self._release_promise(one)
        room, stack = wishes.both(circuit, terms), ExitStack()
        self._service.tests.cleared(partial(self._take_room, room, circuit, stack), for_good=True)
        self._promises[one.connection_id] = stack

    def _take_room(self, room: Circuit, circuit: Circuit, stack: ExitStack) -> None:
        try:
            stack.enter_context(self._register.promising(room))
        except NoRoom as refused:
            raise conflict(room, refused.clash, self._register.holders, instead_of=circuit) from None

    async def _promise_again(self, one: Connection, circuit: Circuit | None) -> None:
        """After a start: a held change has its room again, or its hold is over."""
        terms = one.asked
        if one.connection_id in self._promises or terms is None or circuit is None or circuit.state in FINISHED:
            return
        try:
            self._promise(one, circuit, terms)
        except DownburstError:
            await self._time_out(one)

    def _release_promise(self, one: Connection) -> None:
        stack = self._promises.pop(one.connection_id, None)
        if stack is not None:
            stack.close()

    async def _refuse(
        self,
        one: Connection,
        pending: Pending,
        error: DownburstError,
        update: Callable[[Connection], Connection],
    ) -> None:
        exception = refusal_of(error).exception(self._nsa, one.connection_id)
        await self._change(
            one,
            lambda now: machine.done(update(now), pending),
            lambda now: [_reply(pending, Failed(pending.operation, now.connection_id, exception))],
        )

    async def _confirm(self, one: Connection, pending: Pending, update: Callable[[Connection], Connection]) -> None:
        await self._change(
            one,
            lambda now: machine.done(update(now), pending),
            lambda now: [_reply(pending, Confirmed(pending.operation, now.connection_id))],
        )

    async def _change(
        self, one: Connection, update: Callable[[Connection], Connection], tell: Tell | None = None
    ) -> None:
        changed = await self._book.change(one.connection_id, update, tell)
        self._told(changed)

    async def _of(self, one: Connection) -> Circuit | None:
        """The circuit of a connection, also if a process ended before it could be written down."""
        if one.circuit is not None:
            return await self._circuit(one.circuit)
        name = wishes.request_id(one.connection_id)
        return await self._ledger.read(lambda tx: tx.circuits.of_request(name))

    async def _circuit(self, number: int) -> Circuit:
        found = self._register.open.get(number)
        return found if found is not None else await self._ledger.read(lambda tx: tx.circuits.one(number))

    def _open(self, number: int) -> Circuit:
        circuit = self._register.open.get(number)
        if circuit is None or circuit.state in UPCOMING - {CircuitState.ADMITTED}:
            raise NsiRefusal(ErrorId.TRANSITION, f"circuit {number} is not in use any more; reserve another one")
        return circuit

    def _seen(self, circuit: Circuit) -> None:
        connection_id = self._book.of_circuit.get(circuit.number)
        if connection_id is not None:
            self.soon(connection_id)

    def _now_us(self) -> int:
        return to_us(self._clock.now())


def _is_provision(pending: Pending) -> bool:
    return pending.operation is Operation.PROVISION


def _provisioned(one: Connection) -> Connection:
    return noticing.with_provision(one, ProvisionState.PROVISIONED)


def _released(one: Connection) -> Connection:
    return noticing.with_provision(one, ProvisionState.RELEASED)


def _reply(pending: Pending, body: Reply) -> Telling:
    return Telling(body, pending.correlation_id, pending.reply_to)


def _notices(notice: Notice | None, one: Connection) -> Sequence[Telling]:
    return [] if notice is None else [Telling(notice, f"urn:uuid:{uuid4()}", one.requester.reply_to)]


_LOG = logging.getLogger("downburst.circuits")
TICK_S, AGAIN_S = 0.5, 5.0
ALL_S = 3_600.0
AT_ONCE = 16
