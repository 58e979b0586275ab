"""Our requester against a real provider, in real time, with its records in a folder."""

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from downburst.domain.ordering.providers import Provider
from downburst.foundation.clock import SystemClock, to_us
from downburst_circuits.nsi.order import Change, Standing, Verdict, cancelled, changed, new_order, switched, verdict
from downburst_circuits.nsi.record import Life, Order, as_json, from_json
from downburst_circuits.nsi.refusals import Problem
from downburst_circuits.nsi.requester import Requester, World
from downburst_circuits.nsi.soap.reading import read
from downburst_circuits.nsi.soap.writing import envelope, soap_action
from downburst_circuits.nsi.transport import Exchange, Posted, http_exchange
from downburst_circuits.nsi.words import Criteria, LifecycleState, Listed, Listing, Operation, Request

CIRCUIT = 7


@dataclass
class Folder:
    """Records as files; one is whole or absent after the end of the process at any moment."""

    path: Path

    async def save(self, order: Order) -> None:
        fresh = self.path / "fresh"
        fresh.write_text(json.dumps(as_json(order)))
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.rename(self.path / f"{order.circuit}.json")

    def orders(self) -> Iterator[Order]:
        return (from_json(json.loads(file.read_text())) for file in sorted(self.path.glob("*.json")))


@dataclass
class Timed:
    """The way to the provider, with the time that each answer took."""

    way: Exchange
    took_ms: dict[str, list[float]] = field(default_factory=dict)

    async def post(self, action: str, body: bytes) -> Posted | Problem:
        began_s = time.monotonic()
        try:
            return await self.way.post(action, body)
        finally:
            name = action.strip('"').rsplit("/", 1)[-1]
            self.took_ms.setdefault(name, []).append((time.monotonic() - began_s) * 1e3)


class Hub:
    """One order of one requester."""

    def __init__(self, provider: Provider, way: Exchange, folder: Path) -> None:
        self.provider, self.way = provider, Timed(way)
        folder.mkdir(exist_ok=True)
        store = Folder(folder)
        world = World(SystemClock(), new_id, random.random)
        self.requester = Requester(provider, self.way, store, world, store.orders())

    @property
    def order(self) -> Order:
        return self.requester.orders[CIRCUIT]

    def verdict(self) -> Verdict:
        return verdict(self.order, now_us())

    def is_(self, standing: Standing) -> bool:
        return self.verdict().standing is standing

    async def wish(self, criteria: Criteria) -> None:
        wanted = new_order(CIRCUIT, self.provider, criteria, "circuit 7 of the tests", new_id)
        await self.requester.add(wanted)

    async def change(self, capacity_mbps: int) -> None:
        end_us = self.order.criteria.end_us
        wish = Change(capacity_mbps, end_us)
        await self.requester.change(CIRCUIT, lambda one: changed(one, wish, self.provider, now_us(), new_id))

    async def switch(self) -> None:
        await self.requester.change(CIRCUIT, switched)

    async def cancel(self) -> None:
        await self.requester.change(CIRCUIT, cancelled)

    async def until(self, what: str, holds: Callable[[], bool], seconds: float = 150) -> float:
        """Turns until something holds; returns the seconds that it took."""
        began_s = time.monotonic()
        while not holds():
            elapsed_s = time.monotonic() - began_s
            assert elapsed_s < seconds, f"no {what} within {seconds} s: {self.verdict()}\n{self.requester.link}"
            pause_s = await self.requester.turn()
            if not holds():
                await asyncio.sleep(min(pause_s, POLL_S))
        return time.monotonic() - began_s

    async def until_standing(self, standing: Standing, seconds: float = 150) -> float:
        """Turns until the order stands so; a failed order is not waited for."""
        took_s = await self.until(str(standing), lambda: self.is_(standing) or self.is_(Standing.FAILED), seconds)
        assert self.is_(standing), self.verdict()
        return took_s

    def known(self) -> set[str]:
        """Connections that the records believe to exist."""
        return {
            one.connection_id
            for one in self.order.reservations
            if one.connection_id is not None and one.life is not Life.GONE
        }

    def global_ids(self) -> set[str]:
        return {one.global_id for one in self.order.reservations}


@asynccontextmanager
async def hub(provider: Provider, folder: Path) -> AsyncIterator[Hub]:
    """The hub, as it starts with the records in a folder."""
    async with http_exchange(provider) as way:
        yield Hub(provider, way, folder)


async def existing(provider: Provider) -> list[Listed]:
    """The hub's reservations by the provider's own word, but for those that have ended."""
    return [entry for entry in await listed(provider) if entry.states.lifecycle not in _OVER]


async def listed(provider: Provider) -> list[Listed]:
    """All of the hub's reservations by the provider's own word."""
    async with http_exchange(provider) as way:
        request = Request(Operation.SUMMARY, new_id())
        posted = await way.post(soap_action(request.operation), envelope(request, provider))
    assert isinstance(posted, Posted), posted
    listing = read(posted.body).body
    assert isinstance(listing, Listing), listing
    assert not listing.unread, listing.unread
    return list(listing.reservations)


def now_us() -> int:
    return to_us(SystemClock().now())


def new_id() -> str:
    return f"urn:uuid:{uuid4()}"


POLL_S = 0.2
_OVER = (LifecycleState.TERMINATED, LifecycleState.PASSED_END, LifecycleState.TERMINATING)
"""OpenNSA lists an order that it refused, and once removed as on its way to its end for ever."""
