"""Worst feeds by the quarter hour, read once and kept in memory for a day.

A quarter hour is read again until its last receipts must have come; then it is final. Any number of open pages cost
one reading of the newest quarter hours a minute. After a start of the hub the day is read hour by hour, newest first.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

from downburst.domain.latency import QUARTER_MINUTES
from downburst.foundation.clock import Clock, to_us
from downburst.foundation.errors import LedgerAway
from downburst.ledger import Ledger, Transaction
from downburst.supervision import start
from downburst_api.strip.facts import WholeFeeds, whole_feeds
from downburst_api.strip.worst import BySite, Objectives, newest_worst, worst_by_quarter


@dataclass(frozen=True, slots=True)
class Present:
    """The last 15 minutes, as read in a minute."""

    minute: int
    worst: BySite
    due: frozenset[str] = frozenset()
    """Feeds whose products arrived at the hub, and should have been reported by now."""
    whole: WholeFeeds = field(default_factory=dict)
    newest: Mapping[int, BySite] = field(default_factory=dict)
    """The quarter hours that are not final."""


class StripMemory:
    """What the strip shows of latencies."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._final: dict[int, BySite] = {}
        self._present: Present | None = None
        self._reading: asyncio.Task[None] | None = None
        self._filling: asyncio.Task[None] | None = None

    async def present(self) -> Present | None:
        """The last 15 minutes, a minute old at most; older while the ledger is away, None if it was never read."""
        if self._present is None or self._present.minute != self._minute():
            if self._reading is None or self._reading.done():
                self._reading = start("api.strip-present", self._read_present())
            if self._present is None:
                # A cancelled caller does not cancel the reading for the others.
                await asyncio.shield(self._reading)
        return self._present

    async def day(self, *, patience_s: float = 2.0) -> Mapping[int, BySite]:
        """The quarter hours of the last day that have been read, by their first minutes; waits for the others."""
        present = await self.present()
        if self._missing():
            if self._filling is None or self._filling.done():
                self._filling = start("api.strip-day", self._fill())
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await asyncio.shield(self._filling)
        return {**self._final, **(present.newest if present else {})}

    async def fresh(self) -> None:
        """Waits until the present is of this minute."""
        await self.present()
        if self._reading is not None and not self._reading.done():
            await asyncio.shield(self._reading)

    def quarters(self, hours: int = 24) -> list[int]:
        """The first minutes of the quarter hours of the last hours, oldest first; the last one has not ended."""
        newest = self._minute() // QUARTER_MINUTES * QUARTER_MINUTES
        return [newest - back * QUARTER_MINUTES for back in reversed(range(hours * 60 // QUARTER_MINUTES))]

    async def _read_present(self) -> None:
        minute, since = self._minute(), self._open_since()

        def work(tx: Transaction) -> Present:
            objectives = Objectives.read(tx)
            begin = minute - QUARTER_MINUTES + 1
            read, worst = newest_worst(tx, since, begin, minute + 1, objectives)
            newest = {at: read.get(at, {}) for at in range(since, minute + 1, QUARTER_MINUTES)}
            arrived = tx.measured.traffic.quarters(
                list(objectives.of_feeds), since_minute=begin, until_minute=minute - REPORTED_MINUTES
            )
            return Present(minute, worst, frozenset(one.feed for one in arrived), whole_feeds(tx), newest)

        with suppress(LedgerAway):
            self._present = await self._ledger.read(work)

    async def _fill(self) -> None:
        with suppress(LedgerAway):
            while missing := self._missing():
                await self._read_hour(missing)

    async def _read_hour(self, missing: Sequence[int]) -> None:
        """Reads the newest missing quarter hours that are of one hour of the clock."""
        end = missing[-1] + QUARTER_MINUTES
        begin = (end - 1) // 60 * 60
        begun_s = perf_counter()
        found = await self._ledger.read(
            lambda tx, begin=begin, end=end: worst_by_quarter(tx, begin, end, Objectives.read(tx))  # type: ignore[misc]
        )
        self._final |= {at: found.get(at, {}) for at in missing if begin <= at < end}
        oldest = self.quarters()[0]
        self._final = {at: sites for at, sites in self._final.items() if at >= oldest}
        cost_s = perf_counter() - begun_s
        if cost_s >= CHEAP_S:
            # On a large hub the day takes some seconds of a processor; others need it too.
            await asyncio.sleep(cost_s)

    def _missing(self) -> list[int]:
        return [at for at in self.quarters() if at not in self._final and at < self._open_since()]

    def _open_since(self) -> int:
        """The first minute of the first quarter hour that is not final."""
        return (self._minute() - LATE_MINUTES) // QUARTER_MINUTES * QUARTER_MINUTES

    def _minute(self) -> int:
        return to_us(self._clock.now()) // 60_000_000


LATE_MINUTES = 5
"""Live products are reported within minutes; a quarter hour is final this long after its end."""
REPORTED_MINUTES = 1
"""Reports of the current minute and the one before may still be on their way."""
CHEAP_S = 0.05
