"""The cases of a disk, and their amounts."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.disk import rows
from bench.disk.durable import acknowledged
from bench.disk.giant import beside_warnings
from bench.disk.site_cpu import delivered
from bench.disk.writing import Writing, uftp, uploads
from bench.harness import report
from bench.harness.turns import Turns
from bench.peers.packaged import has_package
from kit.capabilities import reasons


@dataclass(frozen=True)
class Amounts:
    """The amount of work of each case."""

    written_bytes: int
    """Of products of 1 MB and more."""
    small_written_bytes: int
    cpu_bytes: int
    giant_bytes: int
    durable_products: int

    def times(self, scale: float) -> "Amounts":
        """Scales every amount by this factor, with a positive minimum."""
        return Amounts(
            written_bytes=max(10_000_000, round(self.written_bytes * scale)),
            small_written_bytes=max(1_000_000, round(self.small_written_bytes * scale)),
            cpu_bytes=max(10_000_000, round(self.cpu_bytes * scale)),
            giant_bytes=max(50_000_000, round(self.giant_bytes * scale)),
            durable_products=max(100, round(self.durable_products * scale)),
        )


class Bench:
    """The cases; every run starts its processes afresh in a directory of its own."""

    def __init__(self, directory: Path, runs: int, amounts: Amounts, *, only_ours: bool = False) -> None:
        self.notes: list[str] = []
        self._turns, self._runs, self._amounts = Turns(directory, self.notes), runs, amounts
        self._with_peers = not only_ours

    def writing(self) -> list[report.Row]:
        """Row 1."""
        peer, found = self._uftp(), []
        for size, size_bytes in SIZES.items():
            total = self._amounts.small_written_bytes if size_bytes < 1_000_000 else self._amounts.written_bytes
            run = partial(uploads, products=max(2, total // size_bytes), size_bytes=size_bytes)
            runs = self._turns.repeat(f"{size} by HTTP", run, self._runs)
            found += rows.rows_of_writing(size, runs, peer)
            self.notes.append(rows.note_of_writing(size, runs))
        return found

    def site_cpu(self) -> list[report.Row]:
        """Row 2."""
        runs = {}
        for name, rate_bps in {rows.MULTICAST: FAST_BPS, rows.UNICAST: None}.items():
            run = partial(delivered, product_bytes=self._amounts.cpu_bytes, rate_bps=rate_bps)
            runs[name] = self._turns.repeat(f"a site's CPU by {name}", run, self._runs)
            self.notes.append(rows.note_of_site_cpu(name, runs[name]))
        return rows.rows_of_site_cpu(runs)

    def giant(self) -> list[report.Row]:
        """Row 3."""
        run = partial(beside_warnings, size_bytes=self._amounts.giant_bytes)
        runs = self._turns.repeat("a giant beside warnings", run, self._runs)
        self.notes.append(rows.note_of_giant(runs))
        return rows.rows_of_giant(runs)

    def durable(self) -> list[report.Row]:
        """Row 4."""
        found = []
        for window, share in WINDOWS.items():
            products = max(window, round(self._amounts.durable_products * share))
            run = partial(acknowledged, products=products, window=window)
            runs = self._turns.repeat(f"durable, {window} unanswered", run, self._runs)
            found += rows.rows_of_durable(window, runs)
        return found

    def _uftp(self) -> list[Writing]:
        """Its runs, where it is installed and network namespaces can be made."""
        if not self._with_peers:
            return []
        if reason := reasons()["bridge"] or reasons()["veth"]:
            self.notes.append(f"uftp is left out: {reason}")
            return []
        if not has_package("uftp", "uftp", self.notes):
            return []
        run = partial(uftp, product_bytes=self._amounts.written_bytes)
        return self._turns.repeat("uftp", run, self._runs)


SIZES = {"1 MB": 1_000_000, "100 kB": 100_000, "50 MB": 50_000_000}
WINDOWS = {64: 1.0, 1: 0.1}
"""Products that the hub has not answered, of a busy hub and of one source that waits for each, and their share."""
FAST_BPS = 2_000_000_000
FULL = Amounts(
    written_bytes=1_000_000_000,
    small_written_bytes=300_000_000,
    cpu_bytes=500_000_000,
    giant_bytes=5_000_000_000,
    durable_products=2_000,
)
