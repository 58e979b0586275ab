"""Loads the node's batches into the ledger, each once, and answers queries about latency.

The batch's id is stored in the transaction with its contents, so a batch that is handed over again, after a crash
between the ledger and the node's acknowledgement, changes nothing. Quantiles of any selection are computed from
merged sketches, never from averaged quantiles. Negative latencies are shown as they are and attributed to a clock.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from downburst.bus.port import Bus
from downburst.domain.events import BatchLoaded, FaultSeen, SiteViolated
from downburst.domain.faults import Fault
from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Transport
from downburst.domain.probes.signs import PathsMeasured
from downburst.domain.receipts import Batch
from downburst.foundation.clock import Clock, SystemClock, from_us, to_us
from downburst.ledger import Ledger, Transaction
from downburst.sketches.sketch import LatencySketch
from downburst_latency.batch import ReadBatch, read_batch, text_of
from downburst_latency.paths import measured_paths


@dataclass(frozen=True, slots=True)
class LatencySelection:
    """A selection of latencies; None stands for all."""

    kind: LatencyKind = LatencyKind.DISTRIBUTION
    feed: str | None = None
    site: str | None = None
    transport: Transport | None = None
    minutes: int = 60
    """Minutes back from the current one, which counts as one."""


@dataclass(frozen=True, slots=True)
class LatencyFigures:
    """Latencies of a selection."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    min_ms: float
    mean_ms: float
    negative: int
    bound_ms: float | None
    """The largest bound of the clock offsets behind the values; None if no clock was measured."""

    @property
    def flag(self) -> str | None:
        """The caveat that a reader needs before trusting the figures."""
        if self.negative:
            values = "1 value is" if self.negative == 1 else f"{self.negative} values are"
            return f"{values} negative: a clock is off by at least {-self.min_ms:.3g} ms"
        if self.bound_ms is not None and self.bound_ms > self.p50_ms / 2:
            return f"the clocks are known to within {self.bound_ms:.3g} ms only, which is over half of the median"
        return None


class LatencyService:
    """Loads batches and answers queries about latency."""

    def __init__(self, ledger: Ledger, *, bus: Bus | None = None, clock: Clock | None = None) -> None:
        self._ledger = ledger
        self._bus = bus
        self._clock = clock or SystemClock()

    async def load(self, path: Path) -> bool:
        """Stores a batch file's contents; False if they were stored before. ValueError: the file is invalid."""
        return await self.load_text(await asyncio.to_thread(text_of, path))

    async def load_text(self, text: str) -> bool:
        """Stores a batch's contents; False if they were stored before. ValueError: they are invalid.

        Impossible entries are set aside: logged, reported as a fault, and attributed to the site that they name.
        """
        read = await asyncio.to_thread(read_batch, text)
        now = self._clock.now()
        if self._bus is not None:
            paths = await asyncio.to_thread(measured_paths, read.batch.sketches, self._minute())
            if paths:
                self._bus.publish(PathsMeasured(paths))
        fault = _fault_of(read, now)
        fresh = await self._ledger.write(lambda tx: _keep(tx, read.batch, fault))
        if fresh:
            self._tell(read, fault, now)
        return fresh

    def _tell(self, read: ReadBatch, fault: Fault | None, now: datetime) -> None:
        if fault is not None:
            _LOG.warning("%s", fault.sentence)
        if self._bus is None:
            return
        self._bus.publish(BatchLoaded(read.batch.id))
        if fault is not None:
            self._bus.publish(FaultSeen(fault.at, fault.sentence, site=fault.site))
        by_site = {one.site: one.sentence for one in reversed(read.set_aside) if one.site is not None}
        for site, sentence in by_site.items():
            self._bus.publish(SiteViolated(site, now, sentence))

    async def keep_history(self, *, days: float) -> None:
        """Packs minutes that no receipt changes any more and deletes expired history, without end."""
        while True:
            while await self.roll_up():
                pass
            oldest = self._minute() - round(days * MINUTES_A_DAY)
            await self._ledger.write(partial(_keep_house, minute=oldest, now=self._clock.now()))
            await asyncio.sleep(ROLL_UP_S)

    async def roll_up(self) -> int:
        """Packs some minutes of one feed, if they are due; returns the number of sketches."""
        before = self._minute() - OPEN_MINUTES
        return await self._ledger.write(lambda tx: tx.measured.latency.roll_up(before_minute=before))

    async def latency(self, selection: LatencySelection | None = None) -> LatencyFigures | None:
        """The figures of a selection; None if nothing was measured in it."""
        return figures_of(await self._spans(selection or LatencySelection()))

    async def by_site(
        self, selection: LatencySelection | None = None
    ) -> dict[tuple[str, str, Transport], LatencyFigures]:
        """The figures of each feed, site and transport in a selection."""
        rows = await self._spans(selection or LatencySelection())
        groups: dict[tuple[str, str, Transport], list[SketchRow]] = {}
        for row in rows:
            groups.setdefault((row.feed, row.site, row.transport), []).append(row)
        return {key: figures for key, some in sorted(groups.items()) if (figures := figures_of(some)) is not None}

    async def by_minute(self, selection: LatencySelection | None = None) -> dict[int, LatencyFigures]:
        """The figures of each minute (since 1970) in a selection, oldest first."""
        groups: dict[int, list[SketchRow]] = {}
        for row in await self._rows(selection or LatencySelection()):
            groups.setdefault(row.minute, []).append(row)
        return {
            minute: figures for minute, some in sorted(groups.items()) if (figures := figures_of(some)) is not None
        }

    async def _rows(self, wanted: LatencySelection) -> list[SketchRow]:
        return await self._ledger.read(lambda tx: tx.measured.latency.rows(**self._selected(wanted)))

    async def _spans(self, wanted: LatencySelection) -> list[SketchRow]:
        return await self._ledger.read(lambda tx: tx.measured.latency.spans(**self._selected(wanted)))

    def _selected(self, wanted: LatencySelection) -> dict[str, Any]:
        return {
            "since_minute": self._minute() - wanted.minutes + 1,
            "feed": wanted.feed,
            "site": wanted.site,
            "transport": wanted.transport,
            "kind": wanted.kind,
        }

    def _minute(self) -> int:
        return to_us(self._clock.now()) // 60_000_000


def _keep(tx: Transaction, batch: Batch, fault: Fault | None) -> bool:
    fresh = tx.measured.batches.load(batch)
    if fresh and fault is not None:
        tx.measured.faults.add(fault)
    return fresh


def _fault_of(read: ReadBatch, now: datetime) -> Fault | None:
    """The fault for operators about a batch's entries that do not count."""
    if not read.set_aside:
        return None
    first, many = read.set_aside[0], len(read.set_aside)
    entries = "1 entry" if many == 1 else f"{many} entries"
    who = f" of site {first.site}" if first.site else ""
    sentence = (
        f"{entries} of the batch of receipts {read.batch.id} are impossible and were set aside; the first{who}: "
        f"{first.sentence[:SENTENCE_CHARS]}"
    )
    return Fault(now, sentence, site=first.site, next_step="the other entries count; check the receiver of the site")


def _keep_house(tx: Transaction, *, minute: int, now: datetime) -> None:
    tx.measured.latency.forget_before(minute)
    tx.measured.exceptions.forget_before(from_us(minute * 60_000_000))
    tx.measured.partitions.keep(now)


def figures_of(rows: Iterable[SketchRow]) -> LatencyFigures | None:
    """The figures of rows of one kind; None if they hold no value."""
    sketch = LatencySketch.of_rows(rows)
    p50, p95, p99, mean = (*(sketch.quantile_ms(share) for share in (0.5, 0.95, 0.99)), sketch.mean_ms())
    if p50 is None or p95 is None or p99 is None or mean is None:
        return None
    return LatencyFigures(
        count=sketch.count,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=sketch.max_ms,
        min_ms=sketch.min_ms,
        mean_ms=mean,
        negative=sketch.negative,
        bound_ms=sketch.bound_ms,
    )


_LOG = logging.getLogger("downburst.latency")
SENTENCE_CHARS = 500
ROLL_UP_S = 300.0
"""Ten minutes are packed together; much more frequent checks would find nothing."""
OPEN_MINUTES = 10
"""Sketches hold live products, with receipts within minutes; later ones are merged into packed hours."""
"""Between portions of an earlier release's history, so that receipts and people get through."""
MINUTES_A_DAY = 1_440
