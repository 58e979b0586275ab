"""Latencies as classic histograms, at a cost that does not depend on the length of the history.

Minutes that can't change any more are counted once and remembered; each scrape reads only the newest. The ledger's
content at the hub's start is subtracted, so that everything begins at 0 and nothing is counted twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from downburst.domain.latency import LatencyKind
from downburst.exposition.catalogue import BOUNDS_S
from downburst.sketches.sheet import Ints, Path, Sheet, value_of_code

BUCKETS = len(BOUNDS_S) + 1


@dataclass(frozen=True, slots=True)
class Series:
    """One histogram: its kind, its labels' values, the count of each bucket and the sum of all values."""

    kind: LatencyKind
    labels: tuple[str, ...]
    counts: list[int]
    """Not cumulative; the last bucket has no bound."""
    sum_s: float


Key = tuple[LatencyKind, tuple[str, ...]]


@dataclass(slots=True)
class _Table:
    """A row of buckets for each series; grows by rows."""

    at: dict[Key, int] = field(default_factory=dict)
    counts: Ints = field(default_factory=lambda: np.zeros((0, BUCKETS), dtype=np.int64))
    sum_us: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def copy(self) -> "_Table":
        return _Table(dict(self.at), self.counts.copy(), self.sum_us.copy())

    def add(self, sheet: Sheet, times: int = 1) -> None:
        """Adds all values of a sheet, or subtracts them."""
        if not len(sheet):
            return
        line_of_path = np.array([self.at.setdefault(_key(path), len(self.at)) for path in sheet.paths], np.int64)
        more = len(self.at) - len(self.sum_us)
        self.counts = np.concatenate([self.counts, np.zeros((more, BUCKETS), np.int64)])
        self.sum_us = np.concatenate([self.sum_us, np.zeros(more, np.int64)])
        line = line_of_path[sheet.path]
        cells = np.repeat(line, sheet.sizes) * BUCKETS + _bucket_of_codes(sheet.codes)
        np.add.at(self.counts.reshape(-1), cells, sheet.held * times)
        np.add.at(self.sum_us, line, sheet.sum_us * times)


class Histograms:
    """All histograms of a hub."""

    def __init__(self, first_open_minute: int = 0) -> None:
        self._closed = _Table()
        self._shown_sum_us: Ints = np.zeros(0, np.int64)
        self.first_open_minute = first_open_minute
        """Begin of the open minutes: earlier rows are remembered and need not be read again."""

    def begin(self, known: Sheet) -> None:
        """Takes the ledger's open minutes at the hub's start as the past, to be subtracted."""
        self._closed.add(known, times=-1)

    def follow(self, sheet: Sheet, *, now_minute: int) -> Iterator[Series]:
        """Updates every histogram with these rows, all from open minutes; closes minutes that are old enough."""
        open_from = max(self.first_open_minute, now_minute - OPEN_MINUTES)
        self._closed.add(sheet.between(0, open_from))
        self.first_open_minute = open_from
        whole = self._closed.copy()
        whole.add(sheet.between(open_from, _FAR))
        # The lines keep their order, in the closed table too.
        self._closed = _with_lines_of(self._closed, whole)
        self._shown_sum_us = _never_less(whole.sum_us, self._shown_sum_us)
        sums = (self._shown_sum_us / 1e6).tolist()
        counts = whole.counts.tolist()
        for (kind, labels), line in sorted(whole.at.items()):
            yield Series(kind, labels, counts[line], sums[line])


def _with_lines_of(table: _Table, longer: _Table) -> _Table:
    more = len(longer.at) - len(table.at)
    return _Table(
        dict(longer.at),
        np.concatenate([table.counts, np.zeros((more, BUCKETS), np.int64)]),
        np.concatenate([table.sum_us, np.zeros(more, np.int64)]),
    )


def _never_less(now: Ints, before: Ints) -> Ints:
    """Keeps a sum from falling: a wrong clock makes values negative, and Prometheus takes a fall for a restart."""
    before = np.concatenate([before, np.zeros(len(now) - len(before), np.int64)])
    return np.maximum(now, before)


def _key(path: Path) -> Key:
    match LatencyKind(path.kind):
        case LatencyKind.DISTRIBUTION:
            return LatencyKind.DISTRIBUTION, (path.feed, path.site, path.transport)
        case LatencyKind.ACTION:
            return LatencyKind.ACTION, (path.site,)
        case kind:
            return kind, (path.feed, path.transport)


def _bucket_of_codes(codes: Ints) -> Ints:
    """The bucket of a code's values: the first with a bound not below the value."""
    if not len(codes):
        return codes
    known, at = np.unique(codes, return_inverse=True)
    values_s = np.array([value_of_code(code) / 1000 for code in known.tolist()])
    return np.searchsorted(_BOUNDS, values_s, side="left").astype(np.int64)[at]


_BOUNDS = np.array(BOUNDS_S)
_FAR = 2**31 - 1
OPEN_MINUTES = 15
"""Sketches hold live products only; their receipts arrive within minutes or never."""
