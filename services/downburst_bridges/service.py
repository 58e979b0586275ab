"""All bridges of a hub: one task for each source and each publisher that is switched on."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from downburst.bus.port import Bus
from downburst.domain.bridges import BridgesNow, Wis2Source
from downburst.domain.bridges.publishers import Wis2Publisher
from downburst.domain.bridges.signs import BridgesChanged
from downburst.domain.events import EventsMissed
from downburst.ledger import Ledger
from downburst.supervision import keep, start
from downburst_bridges.downloads import OfHub
from downburst_bridges.port import ProductNode
from downburst_bridges.publishing.port import PublishedNode
from downburst_bridges.publishing.publisher import PublisherRunner
from downburst_bridges.source import SourceRunner


class BridgeNode(ProductNode, PublishedNode, Protocol):
    """The hub's node."""


class _Wanted(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def enabled(self) -> bool: ...


class _Runner(Protocol):
    wanted: Any
    now: Any

    async def run(self) -> None: ...

    def look(self) -> None: ...


W = TypeVar("W", bound=_Wanted)
Run = Callable[[], Awaitable[None]]


class Bridges:
    """Follows the sources and publishers of the ledger."""

    def __init__(self, bus: Bus, ledger: Ledger, node: BridgeNode, hub: OfHub, now: BridgesNow) -> None:
        self._bus, self._ledger = bus, ledger

        def publisher(wanted: Wis2Publisher) -> PublisherRunner:
            return PublisherRunner(wanted, ledger, node, hub.clock, ca_file=hub.ca_file)

        def source(wanted: Wis2Source) -> SourceRunner:
            return SourceRunner(wanted, ledger, node, hub)

        self._sources = _Crew[Wis2Source](source, _kept_source, now.sources)
        self._publishers = _Crew[Wis2Publisher](publisher, _kept_publisher, now.publishers)

    async def run(self) -> None:
        """Keeps each of them at work until cancelled."""
        with self._bus.subscribe(BridgesChanged, EventsMissed) as changes:
            try:
                await self._follow()
                async for _ in changes:
                    await self._follow()
            finally:
                await self._sources.end()
                await self._publishers.end()

    async def _follow(self) -> None:
        sources, publishers = await self._ledger.read(lambda tx: (tx.wis2.sources.all(), tx.wis2.publishers.all()))
        await self._sources.follow(sources)
        await self._publishers.follow(publishers)


def _kept_source(run: Run) -> asyncio.Task[None]:
    return start("bridges.source", keep("bridges.source", run))


def _kept_publisher(run: Run) -> asyncio.Task[None]:
    return start("bridges.publisher", keep("bridges.publisher", run))


class _Crew(Generic[W]):
    """A task for each of several that are switched on."""

    def __init__(
        self,
        make: Callable[[W], _Runner],
        keep_up: Callable[[Run], asyncio.Task[None]],
        now: MutableMapping[str, Any],
    ) -> None:
        self._make, self._keep_up, self._now = make, keep_up, now
        self._runners: dict[str, _Runner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def follow(self, all_of_them: Iterable[W]) -> None:
        """Starts, replaces and ends tasks; one that did not change keeps its connections."""
        wanted = {one.name: one for one in all_of_them if one.enabled}
        await self._end({name for name, runner in self._runners.items() if wanted.get(name) != runner.wanted})
        for name in wanted.keys() - self._runners.keys():
            runner = self._runners[name] = self._make(wanted[name])
            self._now[name] = runner.now
            self._tasks[name] = self._keep_up(runner.run)
        for runner in self._runners.values():
            runner.look()

    async def end(self) -> None:
        """Ends all tasks."""
        await self._end(set(self._tasks))

    async def _end(self, names: set[str]) -> None:
        tasks = [self._tasks.pop(name) for name in names]
        for name in names:
            del self._runners[name], self._now[name]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
