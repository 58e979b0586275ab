"""The downloads of a source: products that the ledger has as coming, into its feed.

The end of a product is recorded before it counts as done. A hub that ends in between fetches it again, and the log
answers that it has it. Ends are recorded in groups, as a transaction costs more than what one of them writes.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date
from functools import partial
from pathlib import Path

from downburst.domain.bridges import CentreDay, Ended, FetchEnd, Notice, SourceNow, State, Wis2Source
from downburst.foundation.clock import Clock
from downburst.foundation.errors import DigestMismatch
from downburst.ledger import Ledger, Transaction
from downburst.supervision import keep, start
from downburst_bridges.backlog import READ_AHEAD, Backlog
from downburst_bridges.fetcher import Fetcher, is_of_product
from downburst_bridges.intake import Taken, release
from downburst_bridges.port import ProductNode


@dataclass(frozen=True, slots=True)
class OfHub:
    """Facts about the hub that a source needs."""

    spool: Path
    """A directory for bytes within notifications."""
    client_id: str
    """The begin of its names at brokers, which keep sessions by them."""
    clock: Clock
    ca_file: Path | None = None
    """Authorities of brokers, besides those of the system."""


class Downloads:
    """The downloads of one source."""

    def __init__(self, source: Wis2Source, ledger: Ledger, node: ProductNode, hub: OfHub, now: SourceNow) -> None:
        self._source, self._ledger, self._hub, self._now = source, ledger, hub, now
        self._backlog = Backlog()
        self._fetcher = Fetcher(source, node, hub.spool, self._ended)
        self._more = asyncio.Event()
        self._is_unread = True
        """The ledger may have products of any centre."""
        self._released_on: date | None = None
        self._ends: list[Ended | Notice] = []
        """To be recorded; a notice alone: it is to be tried again."""
        self._done: list[tuple[Notice, bool]] = []
        """Recorded, and whether that settled them."""
        self._recorder: asyncio.Task[None] | None = None

    def add(self, taken: Taken) -> None:
        """Takes what the ledger has just got."""
        self._backlog.drop(taken.others)
        self._backlog.add(taken.notices)
        self._more.set()

    def look(self) -> None:
        """Has the ledger looked at, as failed products may be tried once more."""
        self._is_unread = True
        self._more.set()

    async def run(self) -> None:
        """Fetches until cancelled; those that were announced and not fetched are fetched by the next run."""
        self._hub.spool.mkdir(parents=True, exist_ok=True)
        self._is_unread = True
        while True:
            self._more.clear()
            while self._done:
                notice, settled = self._done.pop()
                self._backlog.ended(notice, settled=settled)
            await self._release()
            await self._read()
            self._fetcher.begin(self._backlog.begin())
            try:
                async with asyncio.timeout(AGAIN_S):
                    await self._more.wait()
            except TimeoutError:
                self._is_unread = True

    async def _release(self) -> None:
        """With each day centres have bytes for products that wait."""
        today = self._hub.clock.now().astimezone(UTC).date()
        if today == self._released_on:
            return
        if await self._ledger.write(partial(release, source=self._source)) == 0:
            self._released_on = today
        self._is_unread = True

    async def _read(self) -> None:
        """Most products come from the intake, and need no read."""
        if self._is_unread:
            self._is_unread = False
            unsettled = await self._ledger.read(lambda tx: tx.wis2.notices.unsettled(self._source.name))
            self._backlog.hide(one.centre for one in unsettled if one.coming)
        for centre in self._backlog.to_read():
            found = await self._ledger.read(partial(_coming, source=self._source.name, centre=centre))
            self._backlog.found(centre, found)

    def _ended(self, notice: Notice, end: FetchEnd) -> None:
        """A refusal that is none of the product's, as that of a node that is away, is tried again later."""
        if end.refusal is not None and not is_of_product(end.refusal):
            start("bridges.fetch", self._again(notice))
        else:
            self._leave(notice, self._counted(notice, end))

    async def _again(self, notice: Notice) -> None:
        await asyncio.sleep(AGAIN_S)
        self._leave(notice, notice)

    def _leave(self, notice: Notice, end: Ended | Notice) -> None:
        self._backlog.fetched(notice)
        self._more.set()
        self._ends.append(end)
        if self._recorder is None or self._recorder.done():
            self._recorder = start("bridges.ends", self._record_all())

    def _counted(self, notice: Notice, end: FetchEnd) -> Ended:
        centre = self._now.centres[notice.centre]
        if end.refusal is not None:
            centre.errors += 1
            centre.differing += isinstance(end.refusal, DigestMismatch)
            return Ended(notice, State.FAILED, end.refusal.sentence)
        centre.downloaded += 1
        centre.last_at = now = self._hub.clock.now()
        self._now.latencies.add((now - notice.last.published_at).total_seconds())
        return Ended(notice, State.HELD, sequence=end.sequence, size_bytes=end.size_bytes)

    async def _record_all(self) -> None:
        while self._ends:
            await asyncio.sleep(GROUP_S)
            group, self._ends = self._ends, []
            await keep("bridges.ends", partial(self._record, group))
            self._more.set()

    async def _record(self, group: Sequence[Ended | Notice]) -> None:
        """Records the ends of a group, or none of them."""
        ends = [one for one in group if isinstance(one, Ended)]
        kept = await self._ledger.write(partial(_settle, source=self._source.name, ends=ends)) if ends else []
        settled = {one.notice.data_id for one in kept}
        notices = (one.notice if isinstance(one, Ended) else one for one in group)
        self._done += [(one, one.data_id in settled) for one in notices]


def _coming(tx: Transaction, *, source: str, centre: str) -> list[Notice]:
    return tx.wis2.notices.coming(source, READ_AHEAD, centre=centre)


def _settle(tx: Transaction, *, source: str, ends: Sequence[Ended]) -> list[Ended]:
    """Records ends, and adds them to the accounts of their centres."""
    kept = tx.wis2.notices.settle(source, ends)
    size_bytes, failed = Counter[str](), Counter[str]()
    for one in kept:
        failed[one.notice.centre] += one.state is State.FAILED
        if one.notice.announced_bytes == 0:
            # Without a length in the notification, its centre's account has nothing of it yet.
            size_bytes[one.notice.centre] += one.size_bytes
    today = tx.clock.now().astimezone(UTC).date()
    days = (CentreDay(source, centre, today, bytes=size_bytes[centre], failed=failed[centre]) for centre in failed)
    tx.wis2.days.add(day for day in days if day.bytes or day.failed)
    return kept


AGAIN_S = 5.0
"""Products that the node could not store for a reason of its own are tried again."""
GROUP_S = 0.05
"""Ends that come within this time are recorded together: nothing waits for them but the page."""
