"""An agent's work beside its node: follows changes, catches up with the ledger, watches other nodes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from uuid import uuid4

from downburst.domain.events import (
    Event,
    FeedsChanged,
    PlanMade,
    SitesChanged,
    SubscriptionsChanged,
    TcpProfilesChanged,
)
from downburst.domain.ordering.signs import SilencesWatched
from downburst.domain.senders import SenderSeen
from downburst.foundation.errors import DownburstError, LedgerAway, NodeAway
from downburst.supervision import attempt, keep, start
from downburst_worker.desired import DesiredState
from downburst_worker.ledger_writer import LedgerWriter
from downburst_worker.node import NodeProcess
from downburst_worker.reference_clock import ReferenceClock
from downburst_worker.remote.answering import answer_for_good
from downburst_worker.reporter import Reporter
from downburst_worker.shared import Shared

Run = Callable[[], Awaitable[None]]


class Upkeep:
    """The loops of an agent."""

    def __init__(
        self, shared: Shared, node: NodeProcess, desired: DesiredState, writer: LedgerWriter, *, reporter: Reporter
    ) -> None:
        self._shared = shared
        self._node = node
        self._desired = desired
        self._writer = writer
        self._reporter = reporter
        self._role = reporter.role
        self._reference = ReferenceClock(shared.ledger, sender=self._role.sender or None)
        self._run = ""
        """The id of the node's process."""
        self._ending = asyncio.Event()
        self._batch_waits = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_ending(self) -> bool:
        """True if the node is about to be stopped."""
        return self._ending.is_set()

    def start(self) -> None:
        """Starts all loops."""
        self._tasks = [start(name, keep(name, run)) for name, run in self._loops()]

    async def stop(self) -> None:
        """Stops all loops; counts that wait for the ledger are written first."""
        self._ending.set()
        self._batch_waits.set()
        for task in self._tasks:
            # Counts that wait for the ledger are written; this loop ends by itself.
            if task.get_name() != CATCHING_UP:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def node_began(self) -> None:
        """Resets for a node that has just started: it has no clock offset, and may have left batches."""
        self._reference.again()
        self._run = uuid4().hex

    def catch_up_soon(self) -> None:
        """Wakes the loop, as a batch is waiting."""
        self._batch_waits.set()

    def _loops(self) -> "Iterator[tuple[str, Run]]":
        yield "agent.changes", self._follow
        yield CATCHING_UP, self._catch_up
        if self._role.has_neighbours:
            yield "agent.neighbours", self._look_around
        if self._role.sender:
            answer = partial(answer_for_good, self._shared.bus, self._role.sender, self._node.ask)
            yield "agent.remote-queries", answer
            yield "agent.signs", self._show_signs

    async def _show_signs(self) -> None:
        """Shows others that this sender's node runs: feeds leave its circuits when the signs stop."""
        while True:
            self._shared.bus.publish(SenderSeen(self._role.sender, self._run, self._node.running))
            await asyncio.sleep(SIGN_S)

    async def _catch_up(self) -> None:
        """Retries waiting writes every second, and immediately for a new batch, until the end."""
        while not self._ending.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(CATCH_UP_S):
                    await self._batch_waits.wait()
            self._batch_waits.clear()
            try:
                await self._writer.catch_up()
                if self._desired.missed and self._shared.ledger.outage is None:
                    self._desired.missed = False
                    await self._desired.apply_all()
            except DownburstError as error:
                _LOG.warning("catching up with the ledger: %s", error.sentence)

    async def _look_around(self) -> None:
        """Twice a second, reads the placement and the senders that wait for this hub's certificate."""
        share = self._role.share
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                if await share.look():
                    self._shared.live.only_senders(share.placement.addresses or {}, self._shared.clock.now())
                    await self._desired.apply_all()
                await share.certify_others(self._node.request)
                await self._reference.tend(self._node.ask)
            except NodeAway:
                pass
            except LedgerAway:
                self._desired.missed = True
            except DownburstError as error:
                _LOG.warning("reading the nodes of this hub: %s", error.sentence)

    async def _follow(self) -> None:
        kinds = FeedsChanged, SitesChanged, SubscriptionsChanged, PlanMade, TcpProfilesChanged, SilencesWatched
        with self._shared.bus.subscribe(*kinds, limit=256) as changes:
            async for change in changes:
                work = partial(self._follow_one, change, lost=changes.take_dropped())
                try:
                    await attempt("agent.change", work, what=f"the change {type(change).__name__}")
                except NodeAway:
                    pass
                except LedgerAway:
                    self._desired.missed = True
                except DownburstError as error:
                    sentence = f"the node refused a change of the settings: {error.sentence}"
                    await self._reporter.fault(sentence)

    async def _follow_one(self, change: Event, *, lost: int) -> None:
        if isinstance(change, SilencesWatched):
            await self._desired.watch_silences(change)
        if lost:
            await self._desired.apply_all()
        elif isinstance(change, PlanMade):
            await self._desired.apply_plan(change.plan)
        elif isinstance(change, FeedsChanged):
            await self._desired.apply_feeds()
        elif isinstance(change, TcpProfilesChanged):
            await self._desired.apply_tcp_profiles()
        elif not isinstance(change, SilencesWatched):
            await self._desired.apply_sites()


_LOG = logging.getLogger("downburst.agent")
CATCHING_UP = "agent.catching-up"
CATCH_UP_S = 1.0
LOOK_S = 0.5
SIGN_S = 0.5
