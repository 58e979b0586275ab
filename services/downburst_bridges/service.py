"""All bridges of a hub: one task for each source that is switched on."""

import asyncio
from collections.abc import MutableMapping
from contextlib import suppress

from downburst.bus.port import Bus
from downburst.domain.bridges import SourceNow, Wis2Source
from downburst.domain.bridges.signs import BridgesChanged
from downburst.domain.events import EventsMissed
from downburst.ledger import Ledger
from downburst.supervision import keep, start
from downburst_bridges.port import ProductNode
from downburst_bridges.source import OfHub, SourceRunner


class Bridges:
    """Follows the sources of the ledger."""

    def __init__(
        self, bus: Bus, ledger: Ledger, node: ProductNode, hub: OfHub, now: MutableMapping[str, SourceNow]
    ) -> None:
        self._now = now
        self._bus, self._ledger, self._node, self._hub = bus, ledger, node, hub
        self._runners: dict[str, SourceRunner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Keeps each source at work until cancelled."""
        with self._bus.subscribe(BridgesChanged, EventsMissed) as changes:
            try:
                await self._follow()
                async for _ in changes:
                    await self._follow()
            finally:
                await self._end(set(self._tasks))

    async def _follow(self) -> None:
        """Starts, replaces and ends tasks; a source that did not change keeps its connections."""
        sources = await self._ledger.read(lambda tx: tx.wis2.sources.all())
        wanted = {source.name: source for source in sources if source.enabled}
        changed = {name for name, runner in self._runners.items() if wanted.get(name) != runner.source}
        await self._end(changed)
        for name in wanted.keys() - self._runners.keys():
            self._begin(wanted[name])
        for runner in self._runners.values():
            runner.look()

    def _begin(self, source: Wis2Source) -> None:
        runner = self._runners[source.name] = SourceRunner(source, self._ledger, self._node, self._hub)
        self._now[source.name] = runner.now
        self._tasks[source.name] = start("bridges.source", keep("bridges.source", runner.run))

    async def _end(self, names: set[str]) -> None:
        tasks = [self._tasks.pop(name) for name in names]
        for name in names:
            del self._runners[name], self._now[name]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
