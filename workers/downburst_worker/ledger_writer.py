"""Writes the node's counts into the ledger: immediately, or later if the ledger's server is away.

In the meantime no report of the node is lost and memory stays bounded: batches remain files until they are loaded,
and each leg, minute, head and resend has one entry, for any length of time.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from downburst.domain.feeds import TrafficMinute
from downburst.domain.plans import LegCounters
from downburst.domain.receipts import LogHead
from downburst.domain.relays.report import Tunnel
from downburst.domain.relays.siblings import Saved
from downburst.domain.tcp.profiles import TcpTrial
from downburst.foundation.clock import to_us
from downburst.foundation.errors import DownburstError, Failure, LedgerAway
from downburst.ledger import Ledger, Transaction
from downburst.supervision import FAULTS

BatchLoader = Callable[[Path], Awaitable[object]]
"""Loads one batch file into the ledger, once; raises ValueError or KeyError if the file is invalid."""


class Counts:
    """Counts that are not in the ledger yet."""

    def __init__(self) -> None:
        self._legs: dict[tuple[str, int, int], LegCounters] = {}
        self._minutes: dict[tuple[str, int], TrafficMinute] = {}
        self._heads: dict[tuple[str, str], LogHead] = {}
        self.resends: dict[int, tuple[int, int, int]] = {}
        """By ended resend: products, bytes, and the number expired."""
        self.trials: deque[TcpTrial] = deque(maxlen=TRIALS_WAITING)
        """Steps of trials, oldest first; beyond the limit the oldest are dropped."""
        self.tunnels: deque[tuple[str, Tunnel]] = deque(maxlen=TUNNELS_WAITING)
        """Relays with tunnels for their log, in the same manner."""
        self.saved: dict[tuple[str, str], Saved] = {}
        """By site and feed, the products that siblings gave."""

    def __bool__(self) -> bool:
        return any((self._legs, self._minutes, self._heads, self.resends, self.trials, self.tunnels, self.saved))

    def add(
        self, legs: Iterable[LegCounters] = (), minutes: Iterable[TrafficMinute] = (), heads: Iterable[LogHead] = ()
    ) -> None:
        """Adds to the waiting counts."""
        for leg in legs:
            here = leg.feed, leg.version, leg.leg
            self._legs[here] = _sum(self._legs[here], leg) if here in self._legs else leg
        for minute in minutes:
            before = self._minutes.get((minute.feed, minute.minute))
            self._minutes[minute.feed, minute.minute] = minute if before is None else _both(before, minute)
        for head in heads:
            known = self._heads.get((head.feed, head.epoch))
            if known is None or head.sequence > known.sequence:
                self._heads[head.feed, head.epoch] = head

    def save(self, saved: Iterable[Saved]) -> None:
        """Adds products that siblings gave."""
        for one in saved:
            before = self.saved.get((one.site, one.feed), Saved(one.site, one.feed, 0, 0))
            both = replace(before, products=before.products + one.products, bytes=before.bytes + one.bytes)
            self.saved[one.site, one.feed] = both

    def keep_in(self, tx: Transaction) -> None:
        """Writes all of them."""
        tx.planning.legs.count(self._legs.values())
        if self._legs:
            _count_egress(tx, self._legs.values())
        tx.measured.traffic.add(self._minutes.values())
        tx.measured.log_heads.rise(self._heads.values())
        for number, (products, size_bytes, expired) in self.resends.items():
            tx.resends.finish(number, products=products, size_bytes=size_bytes, expired=expired)
        for trial in self.trials:
            tx.fleet.tcp_profiles.tried(trial)
        for relay, tunnel in self.tunnels:
            tx.fleet.relay_log.add(relay, [tunnel])
        tx.fleet.siblings.count(self.saved.values())


class LedgerWriter:
    """Writes the node's counts and batches into the ledger."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        batch_dir: Path,
        load_batch: BatchLoader,
        loaded: Callable[[str], Awaitable[object]],
        put_aside: Callable[[Path], Awaitable[object]],
    ) -> None:
        self._ledger = ledger
        self._batch_dir = batch_dir
        self._load_batch = load_batch
        self._loaded = loaded
        self._put_aside = put_aside
        self._waiting = Counts()
        self._batches_wait = False
        self._loading = asyncio.Lock()
        self._writing = asyncio.Lock()

    async def count(
        self, legs: Iterable[LegCounters] = (), minutes: Iterable[TrafficMinute] = (), heads: Iterable[LogHead] = ()
    ) -> None:
        """Stores counts, together with the waiting ones."""
        self._waiting.add(legs, minutes, heads)
        await self._write_counts()

    async def finish_resend(self, number: int, products: int, size_bytes: int, expired: int) -> None:
        """Stores the outcome of a resend."""
        self._waiting.resends[number] = products, size_bytes, expired
        await self._write_counts()

    async def keep_trial(self, trial: TcpTrial) -> None:
        """Stores a step of a trial of TCP values."""
        self._waiting.trials.append(trial)
        await self._write_counts()

    async def log_tunnels(self, relay: str, tunnels: Iterable[Tunnel]) -> None:
        """Stores tunnels in the log of their relay."""
        self._waiting.tunnels.extend((relay, tunnel) for tunnel in tunnels)
        await self._write_counts()

    async def count_saved(self, saved: Iterable[Saved]) -> None:
        """Adds to the account of the products that siblings gave."""
        self._waiting.save(saved)
        await self._write_counts()

    async def take_batch(self, path: Path) -> None:
        """Loads a batch; sets an invalid one aside, leaves it in place while the ledger is away."""
        async with self._loading:
            await self._take(path)

    async def take_waiting_batches(self) -> None:
        """Loads the waiting batches, oldest first."""
        self._batches_wait = False
        for path in await asyncio.to_thread(_oldest_first, self._batch_dir):
            await self.take_batch(path)
            if self._batches_wait:
                return

    def look_for_batches(self) -> None:
        """Has `catch_up` load the waiting batches, so that no caller waits for their contents."""
        self._batches_wait = True

    async def catch_up(self) -> None:
        """Retries what the ledger did not take before, if there is anything."""
        await self._write_counts()
        if self._batches_wait:
            await self.take_waiting_batches()

    async def _take(self, path: Path) -> None:
        if not await asyncio.to_thread(path.exists):
            return
        try:
            await self._load_batch(path)
        except Failure as error:
            # The hub can't do it now: this is no evidence against the batch.
            _LOG.info("batch %s waits: %s", path.name, error.sentence)
            self._batches_wait = True
            return
        except Exception as error:  # noqa: BLE001
            if isinstance(error, ValueError):
                # A damaged file: the hub itself is not at fault.
                _LOG.warning("the batch of receipts %s can't be understood: %s", path.name, error)
            else:
                FAULTS.caught("node.batch", error, f"the batch of receipts {path.name}")
            await asyncio.to_thread(path.rename, path.with_suffix(".bad"))
            await self._put_aside(path)
            return
        await self._loaded(path.stem)

    async def _write_counts(self) -> None:
        async with self._writing:
            if not self._waiting:
                return
            counts, self._waiting = self._waiting, Counts()
            try:
                # Without patience: the next second's counts retry it, and callers do not wait.
                await self._ledger.write(counts.keep_in, patience_s=0)
            except LedgerAway:
                self._put_back(counts)
            except DownburstError:
                self._put_back(counts)
                raise

    def _put_back(self, counts: Counts) -> None:
        later, self._waiting = self._waiting, counts
        counts.add(later._legs.values(), later._minutes.values(), later._heads.values())
        counts.resends |= later.resends
        counts.trials.extend(later.trials)
        counts.tunnels.extend(later.tunnels)
        counts.save(later.saved.values())


def _count_egress(tx: Transaction, legs: Collection[LegCounters]) -> None:
    """Counts bytes in the quarter hour in which they are written, a second after they were sent."""
    tx.measured.egress.add(
        to_us(tx.clock.now()) // 60_000_000,
        egress_bytes=sum(leg.egress_bytes for leg in legs),
        unicast_equivalent_bytes=sum(leg.unicast_equivalent_bytes for leg in legs),
    )


def _oldest_first(directory: Path) -> list[Path]:
    found = []
    for path in directory.glob("*.json"):
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def _sum(one: LegCounters, other: LegCounters) -> LegCounters:
    added = {name: getattr(one, name) + getattr(other, name) for name in _ADDED}
    return replace(one, sites=max(one.sites, other.sites), **added)


def _both(one: TrafficMinute, other: TrafficMinute) -> TrafficMinute:
    return replace(
        one,
        products=one.products + other.products,
        bytes=one.bytes + other.bytes,
        peak_1s_bytes=max(one.peak_1s_bytes, other.peak_1s_bytes),
    )


TRIALS_WAITING = 1_000
TUNNELS_WAITING = 1_000
_LOG = logging.getLogger("downburst.agent")
_ADDED = (
    "products",
    "product_bytes",
    "egress_bytes",
    "repair_bytes",
    "control_bytes",
    "unicast_equivalent_bytes",
)
