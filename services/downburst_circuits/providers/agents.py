"""The requesters of all NSI providers: one for each record, with a task that turns it and its place in the ledger."""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from uuid import uuid4

from downburst.bus.port import Bus
from downburst.domain.circuits import Circuit
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.ordering.providers import Dialect, Provider
from downburst.foundation.clock import Clock, to_us
from downburst.foundation.errors import BadInput, CircuitConflict, Failure, Refused
from downburst.ledger import Ledger, Transaction
from downburst.supervision import keep, start
from downburst_circuits.nsi import link, order
from downburst_circuits.nsi.callbacks import incoming
from downburst_circuits.nsi.order import Change, Verdict
from downburst_circuits.nsi.record import Goal, Order, as_json, from_json
from downburst_circuits.nsi.refusals import Kind, Problem, Unsent
from downburst_circuits.nsi.requester import Requester, World
from downburst_circuits.nsi.transport import Exchange, HttpExchange, Posted, http_exchange
from downburst_circuits.nsi.words import Criteria
from downburst_circuits.register import Register


class Way:
    """The way to a provider: opened when it is used, and anew after a problem, as files may have been renewed."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._opened = AsyncExitStack()
        self._exchange: HttpExchange | None = None

    async def post(self, action: str, body: bytes) -> Posted | Problem:
        """Sends a message; certificate files that can't be used are a problem of the way."""
        try:
            if self._exchange is None:
                self._exchange = await self._opened.enter_async_context(http_exchange(self._provider))
        except BadInput as error:
            return Unsent(Kind.CERTIFICATE, error.sentence)
        found = await self._exchange.post(action, body)
        if isinstance(found, Problem):
            await self.close()
        return found

    async def close(self) -> None:
        """Ends its connection."""
        self._exchange = None
        await self._opened.aclose()


class LedgerStore:
    """The requester's records in the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def save(self, one: Order) -> None:
        """Stores a record durably, in place of the former one of its circuit."""
        await self._ledger.write(lambda tx: tx.planning.nsi.put(one.circuit, one.provider, as_json(one)))


class Agent:
    """The orders of one provider."""

    def __init__(
        self,
        provider: Provider,
        exchange: Exchange,
        known: list[Order],
        *,
        register: Register,
        ledger: Ledger,
        clock: Clock,
    ) -> None:
        self.provider = provider
        self._register = register
        self._ledger = ledger
        self._clock = clock
        self._exchange = exchange
        self._requester = Requester(
            provider, exchange, LedgerStore(ledger), World(clock, new_id, random.random), known
        )
        self._due = asyncio.Event()
        self._turned = asyncio.Event()
        self._gone_since_s: dict[int, float] = {}
        self._is_told = False

    def order(self, circuit: int) -> Order | None:
        """The record of a circuit's order."""
        return self._requester.orders.get(circuit)

    def verdict(self, one: Order) -> Verdict:
        """The state of an order at this moment."""
        return order.verdict(one, self._now_us())

    @property
    def unreached(self) -> str:
        """The reason why the provider can't be reached; empty while it answers."""
        return link.sentence(self._requester.link)

    async def put(self, one: Order) -> None:
        """Stores a new order, to be sent."""
        await self._requester.add(one)
        self._due.set()

    async def cancel(self, circuit: int) -> None:
        """Has an order removed at the provider."""
        one = self.order(circuit)
        if one is not None and any(each.goal is not Goal.END for each in one.reservations):
            await self._requester.change(circuit, order.cancelled)
            self._due.set()

    async def hold(self, circuit: Circuit, criteria: Criteria, words: str) -> None:
        """Has the provider hold a circuit until its commit, unless it holds that already; raises its refusal."""
        if self.order(circuit.number) is None:
            ahead = circuit.begin > self._clock.now() + BEGINS_NOW
            wanted = replace(criteria, begin_us=to_us(circuit.begin) if ahead else None)
            await self.put(replace(order.new_order(circuit.number, self.provider, wanted, words, new_id), holds=True))
        await self._reached(circuit.number, order.is_held)

    async def commit(self, circuit: int) -> None:
        """Commits what the provider holds for a circuit; raises its refusal."""
        if self.order(circuit) is not None:
            await self._requester.change(circuit, order.to_commit)
            self._due.set()
        await self._reached(circuit, order.is_committed)

    async def negotiate(self, circuit: int, change: Change) -> None:
        """Changes an order at the provider; otherwise raises one sentence."""
        name = self.provider.name
        if self.provider.dialect is Dialect.NONE:
            raise BadInput(
                f"provider {name} changes no reservation; request another circuit with the new terms, and cancel "
                f"circuit {circuit} when that is active"
            )
        found: str | None = self.unreached
        if not found:
            await self._requester.change(
                circuit, lambda one: order.changed(one, change, self.provider, self._now_us(), new_id)
            )
            self._due.set()
            found = await self._outcome(circuit)
        if found:
            raise Failure(f"circuit {circuit} stays as it was: {found}", step="order", hop=f"provider {name}")

    async def heard(self, body: bytes) -> bytes:
        """Takes a callback; returns the answer to it. Refuses one that names others."""
        message, answer = incoming(body, self.provider)
        await self._requester.heard(message)
        self._due.set()
        return answer

    async def run(self) -> None:
        """Turns at the requester's pace, and immediately after a change; until cancelled."""
        while True:
            pause_s = await self.turn()
            await self.tidy()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(max(pause_s, LEAST_PAUSE_S), MOST_PAUSE_S)):
                    await self._due.wait()

    async def turn(self) -> float:
        """Sends what is due; the seconds until the next turn."""
        self._due.clear()
        pause_s = await self._requester.turn()
        self._turned.set()
        return pause_s

    async def tidy(self) -> None:
        """Reports an outage once. Cancels orders without an open circuit; forgets them some time after their end."""
        await self._report()
        now_s = self._clock.monotonic_s()
        for circuit, one in list(self._requester.orders.items()):
            if circuit in self._register.open:
                self._gone_since_s.pop(circuit, None)
            elif not order.is_gone(one):
                await self.cancel(circuit)
            elif now_s >= self._gone_since_s.setdefault(circuit, now_s) + KEPT_S:
                await self._ledger.write(partial(_removed, circuit))
                self._requester.forget(circuit)
                del self._gone_since_s[circuit]

    async def close(self) -> None:
        """Ends its connection."""
        if isinstance(self._exchange, Way):
            await self._exchange.close()

    async def _report(self) -> None:
        failures, unread = self._requester.link.failures, self._requester.unread
        words = self.unreached or next(iter(unread), "")
        if not self._is_told and (failures >= TOLD_AFTER or unread):
            await self._register.fault(words)
            self._is_told = True
        elif self._is_told and not words:
            _LOG.info("provider %s answers again", self.provider.name)
            self._is_told = False

    async def _reached(self, circuit: int, holds: Callable[[Order], bool]) -> None:
        """Waits until an order has come to a point; raises the provider's words if it never will."""
        try:
            async with asyncio.timeout(CHANGE_S):
                while (one := self.order(circuit)) is not None and one.serving.goal is not Goal.END:
                    if holds(one):
                        return
                    self._turned.clear()
                    await self._turned.wait()
        except TimeoutError:
            raise Failure(f"circuit {circuit} is not reserved: {self._unanswered()}") from None
        problem = one.serving.problem if one else None
        words = problem.sentence if problem else f"provider {self.provider.name} holds nothing for it"
        raise CircuitConflict(f"circuit {circuit} is not reserved: {words}")

    async def _outcome(self, circuit: int) -> str:
        """The reason why a change was not made; empty if it was made. Without an answer it is withdrawn if unsent."""
        try:
            async with asyncio.timeout(CHANGE_S):
                while (found := self._change_of(circuit)) is None:
                    self._turned.clear()
                    await self._turned.wait()
                return found
        except TimeoutError:
            before = self._requester.orders[circuit]
            await self._requester.change(circuit, order.withdrawn)
            is_withdrawn = self._requester.orders[circuit] != before
            found = None if is_withdrawn else self._change_of(circuit)
            return self._unanswered() if found is None else found

    def _change_of(self, circuit: int) -> str | None:
        """The reason why a change was not made, empty if it was made; None: it is under way."""
        one = self._requester.orders[circuit].serving
        problem = one.problem or one.change_problem
        if problem is not None or one.goal is Goal.END:
            return problem.sentence if problem else "it has ended"
        return "" if one.ask is None and one.granted is not None else None

    def _unanswered(self) -> str:
        why = self.unreached or f"provider {self.provider.name} has not answered for {CHANGE_S:.0f} s"
        return f"{why}; its answer may still come: measure the circuit in some minutes, then ask again"

    def _now_us(self) -> int:
        return to_us(self._clock.now())


class Agents:
    """All providers with a record in the ledger."""

    def __init__(
        self,
        register: Register,
        *,
        ledger: Ledger,
        bus: Bus,
        clock: Clock,
        way: Callable[[Provider], Exchange] = Way,
    ) -> None:
        self._register = register
        self._ledger = ledger
        self._bus = bus
        self._clock = clock
        self._way = way
        self._agents: dict[str, Agent] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._damaged: dict[str, str] = {}
        """By provider the reason why its stored orders can't be read: without them nothing may be ordered."""
        self._is_loaded = self._is_running = False
        self._loading = asyncio.Lock()

    async def of(self, name: str) -> Agent | str:
        """The agent of a provider; the reason if there is none at the moment."""
        if not self._is_loaded or (name not in self._agents and name not in self._damaged):
            await self.reload()
        missing = f"there is no record of provider {name} any more; add it again"
        return self._agents.get(name) or self._damaged.get(name) or missing

    def known(self, name: str) -> Agent | None:
        """The agent of a provider, if the records were read."""
        return self._agents.get(name)

    async def run(self) -> None:
        """Keeps a task for each record until cancelled; reads records after each change, and now and then."""
        self._is_running = True
        try:
            with self._bus.subscribe(CircuitsChanged) as events:
                while not events.closed:
                    await self.reload()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(RELOAD_S):
                            while (event := await events.next()) is not None:
                                # A change of one circuit is none of a record.
                                if isinstance(event, CircuitsChanged) and event.circuit is None:
                                    break
        finally:
            self._is_running = False
            for name in list(self._agents):
                await self._end(name)
            self._is_loaded = False

    async def reload(self) -> None:
        """Reads the records; a changed one begins anew with its stored orders."""
        async with self._loading:
            found = await self._ledger.read(lambda tx: tx.planning.providers.all())
            records = {provider.name: provider for provider in found}
            for name, agent in list(self._agents.items()):
                if records.get(name) != agent.provider:
                    await self._end(name)
            for provider in records.values():
                if provider.name not in self._agents:
                    await self._begin(provider)
            self._is_loaded = True
            for name in self._agents if self._is_running else ():
                if name not in self._tasks:
                    self._tasks[name] = start("circuits.provider", keep("circuits.provider", self._agents[name].run))

    async def turn(self) -> None:
        """One turn of every agent."""
        for agent in list(self._agents.values()):
            await agent.turn()
            await agent.tidy()

    async def heard(self, body: bytes) -> bytes:
        """Takes a callback for the agent that it names; raises one sentence if it names none."""
        for agent in list(self._agents.values()):
            with suppress(Refused):
                return await agent.heard(body)
        raise Refused("the callback names no provider and requester of this hub's records")

    async def _begin(self, provider: Provider) -> None:
        name = provider.name
        stored = await self._ledger.read(lambda tx: tx.planning.nsi.of_provider(name))
        try:
            known = [from_json(record) for record in stored]
        except BadInput as error:
            if self._damaged.get(name) != error.sentence:
                self._damaged[name] = error.sentence
                await self._register.fault(error.sentence)
            return
        self._damaged.pop(name, None)
        self._agents[name] = Agent(
            provider,
            self._way(provider),
            known,
            register=self._register,
            ledger=self._ledger,
            clock=self._clock,
        )

    async def _end(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        agent = self._agents.pop(name)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await agent.close()


def new_id() -> str:
    """A global id or correlation id."""
    return f"urn:uuid:{uuid4()}"


def _removed(circuit: int, tx: Transaction) -> None:
    tx.planning.nsi.remove(circuit)


_LOG = logging.getLogger("downburst.circuits")
BEGINS_NOW = timedelta(seconds=60)
"""An order for a moment that is so near has no begin: it would be past when it arrives."""
CHANGE_S = 60.0
"""A provider confirms a change in some seconds; a request may take three quarters of a minute."""
LEAST_PAUSE_S, MOST_PAUSE_S = 0.05, 300.0
RELOAD_S = 30.0
TOLD_AFTER = 2
"""Failed attempts in a row: a single one may be the restart of a proxy."""
KEPT_S = 600.0
"""A request that was late may make a reservation after the end of its order: the list would show it."""
