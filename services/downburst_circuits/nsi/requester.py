"""Carries the orders of one provider: requests one at a time, then its list, and no address of ours.

`turn` is to be called again after the seconds that it returns. Every record is stored before its request is sent and
after its answer, so the process may end at any moment.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from downburst.domain.ordering.providers import Provider
from downburst.foundation.clock import Clock, to_us
from downburst_circuits.nsi import order as orders
from downburst_circuits.nsi.answers import Answer, answer
from downburst_circuits.nsi.link import Link, missed
from downburst_circuits.nsi.record import Order
from downburst_circuits.nsi.refusals import Kind, Problem, Unsent
from downburst_circuits.nsi.soap.writing import envelope, soap_action
from downburst_circuits.nsi.transport import Exchange
from downburst_circuits.nsi.words import Acknowledged, Fault, Listing, Message, Operation, Request, Results


class Store(Protocol):
    """The place of the records."""

    async def save(self, order: Order) -> None:
        """Stores a record durably, in place of the former one of its circuit."""


@dataclass(frozen=True, slots=True)
class World:
    """Time and chance."""

    clock: Clock
    ids: Callable[[], str]
    """A new `urn:uuid:` in lower case."""
    share: Callable[[], float]
    """A random number from 0 to 1."""


class Requester:
    """The orders of one provider."""

    def __init__(
        self, provider: Provider, exchange: Exchange, store: Store, world: World, known: Iterable[Order] = ()
    ) -> None:
        self._provider, self._exchange, self._store, self._world = provider, exchange, store, world
        self._orders = {order.circuit: order for order in known}
        self._lock = asyncio.Lock()
        self._list_at_s = 0.0
        self.link = Link()
        self.unread: tuple[str, ...] = ()
        """A sentence for each unreadable entry of the last list: while one may be ours, nothing counts as lost."""

    @property
    def orders(self) -> Mapping[int, Order]:
        """All records, by circuit."""
        return self._orders

    async def add(self, order: Order) -> None:
        """Stores an order to be sent."""
        async with self._lock:
            await self._keep(order)
        self._list_at_s = 0.0

    async def change(self, circuit: int, change: Callable[[Order], Order]) -> None:
        """Changes an order: by `order.changed`, `switched` or `cancelled`."""
        async with self._lock:
            await self._keep(change(self._orders[circuit]))
        self._list_at_s = 0.0

    def forget(self, circuit: int) -> None:
        """Drops an order whose record was removed, some time after its end."""
        self._orders.pop(circuit, None)

    async def heard(self, message: Message) -> None:
        """Takes a callback of a client whose certificate was verified. It hurries the next list if it is for us."""
        for circuit in list(self._orders):
            await self._apply(circuit, lambda one: orders.after_callback(one, message, self._provider))
        if _concerns(message, self._orders.values()):
            self._list_at_s = 0.0

    async def turn(self) -> float:
        """Sends what is due and asks for the list if it is time; the seconds until the next turn."""
        if not self._is_reached():
            return self.link.next_s - self._now_s()
        for circuit in list(self._orders):
            await self._send(circuit)
        if self._orders and self._is_reached() and self._now_s() >= self._list_at_s:
            await self._list()
        return self._pause_s()

    async def _send(self, circuit: int) -> None:
        for _ in range(_REQUESTS_PER_TURN):
            if not self._is_reached() or (request := await self._due(circuit)) is None:
                return
            found = await self._ask(request)
            self._list_at_s = min(self._list_at_s, self._now_s())
            if isinstance(found, Acknowledged | Fault | Unsent):
                await self._apply(circuit, _answered(request, found, self._provider))

    async def _due(self, circuit: int) -> Request | None:
        """The next request of an order, whose record is stored before."""
        async with self._lock:
            order = self._orders.get(circuit)
            found = order and orders.due(order, self._now_us(), self._world.ids)
            if not found:
                return None
            await self._keep(found[0])
            return found[1]

    async def _list(self) -> None:
        asked_at_us = self._now_us()
        found = await self._ask(Request(Operation.SUMMARY, self._world.ids()))
        if not isinstance(found, Listing):
            self._missed(found)
            return
        self.link, self.unread = Link(), tuple(entry.sentence for entry in found.unread)
        for circuit in list(self._orders):
            await self._apply(circuit, lambda one: orders.after_listing(one, found, asked_at_us, self._provider))
        for circuit in list(self._orders):
            await self._ask_for_words(circuit)
        now_us = self._now_us()
        next_us = min(orders.next_list_us(order, now_us) for order in self._orders.values())
        self._list_at_s = self._now_s() + (next_us - now_us) / _SECOND_US

    async def _ask_for_words(self, circuit: int) -> None:
        """The stored replies of a reservation whose outcome the list shows without its words."""
        order = self._orders.get(circuit)
        request = orders.question(order, self._world.ids) if order else None
        if request is None or request.connection_id is None or not self._is_reached():
            return
        connection_id, found = request.connection_id, await self._ask(request)
        if isinstance(found, Problem) and found.kind is not Kind.UNKNOWN:
            return
        results = found if isinstance(found, Results) else None
        await self._apply(circuit, lambda one: orders.after_results(one, connection_id, results, self._provider))

    async def _ask(self, request: Request) -> Answer | Problem:
        """An answer, or the reason why there is none; problems of the way there count against the link."""
        posted = await self._exchange.post(soap_action(request.operation), envelope(request, self._provider))
        found = posted if isinstance(posted, Problem) else answer(posted, request.operation, self._provider.name)
        if isinstance(found, Problem) and found.kind is not Kind.UNKNOWN:
            self._missed(found)
        return found

    def _missed(self, found: Answer | Problem) -> None:
        if not self._is_reached():
            return
        problem = found if isinstance(found, Problem) else _no_list(found, self._provider.name)
        self.link = missed(self.link, problem, self._world.clock, self._world.share())

    def _is_reached(self) -> bool:
        return self._now_s() >= self.link.next_s

    async def _apply(self, circuit: int, change: Callable[[Order], Order]) -> None:
        """Changes the latest record: a callback may have come while an answer was awaited."""
        async with self._lock:
            before = self._orders.get(circuit)
            if before is not None and (after := change(before)) != before:
                await self._keep(after)

    async def _keep(self, order: Order) -> None:
        await self._store.save(order)
        self._orders[order.circuit] = order

    def _pause_s(self) -> float:
        now_s = self._now_s()
        next_s = max(self.link.next_s, min(self._list_at_s, now_s + orders.BUSY_US / _SECOND_US))
        return max(0.0, next_s - now_s)

    def _now_s(self) -> float:
        """For paces; the wall clock is for records and windows."""
        return self._world.clock.monotonic_s()

    def _now_us(self) -> int:
        return to_us(self._world.clock.now())


def _answered(request: Request, found: Acknowledged | Fault | Unsent, provider: Provider) -> Callable[[Order], Order]:
    if isinstance(found, Unsent):
        return lambda one: orders.after_unsent(one, request.correlation_id)
    return lambda one: orders.after_answer(one, request.correlation_id, found, provider)


def _no_list(found: Answer, provider: str) -> Problem:
    words = ""
    if isinstance(found, Fault):
        words = f": {found.exception.error_id} {found.exception.text}" if found.exception else f": {found.text}"
    return Problem(Kind.UNKNOWN, f"provider {provider} does not list the hub's reservations{words}")


def _concerns(message: Message, known: Iterable[Order]) -> bool:
    """True if the message names a connection of ours."""
    named = getattr(message.body, "connection_id", None)
    return named is not None and any(one.connection_id == named for order in known for one in order.reservations)


_SECOND_US = 1_000_000
_REQUESTS_PER_TURN = 3
