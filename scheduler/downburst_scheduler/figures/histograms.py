"""Counts by magnitude: quantiles and tails of a stream of positive numbers in a few kilobytes.

A bin is `STEP` wide in the natural logarithm, so that a quantile is accurate to one per cent for a stream of any
length. Beside the count each bin has the sum of its values, which gives exact shares of the total at the bins'
edges. Zero has a bin of its own.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def _nothing() -> Floats:
    return np.zeros(BINS)


@dataclass(slots=True)
class LogHistogram:
    """A histogram of numbers that are zero or lie between `SMALLEST` and `LARGEST`; others count at the edge."""

    counts: Floats = field(default_factory=_nothing)
    sums: Floats = field(default_factory=_nothing)
    largest: float = 0.0

    def add(self, values: Floats, weights: Floats | float = 1.0) -> None:
        """Counts the values, with weights."""
        if len(values) == 0:
            return
        bins = places(values)
        weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), values.shape)
        self.counts += np.bincount(bins, weights=weights, minlength=BINS)
        self.sums += np.bincount(bins, weights=weights * values, minlength=BINS)
        self.largest = max(self.largest, float(values.max()))

    def merge(self, other: "LogHistogram", *, weight: float = 1.0) -> None:
        """Adds the counts of another histogram."""
        self.counts += other.counts * weight
        self.sums += other.sums * weight
        self.largest = max(self.largest, other.largest)

    @property
    def count(self) -> float:
        """The total count."""
        return float(self.counts.sum())

    @property
    def mean(self) -> float:
        """The mean of the values; zero of none."""
        return float(self.sums.sum()) / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """The value that `share` of the values do not exceed; the mean of its bin."""
        return quantile_of(self.counts, self.sums, share, largest=self.largest)

    def share_of_largest(self, share: float) -> float:
        """The share of the sum that is held by the largest `share` of the values."""
        total = float(self.sums.sum())
        if not total:
            return 0.0
        wanted = share * self.count
        below = wanted - np.minimum(np.cumsum(self.counts[::-1]), wanted)
        taken = -np.diff(below, prepend=wanted)
        means = np.divide(self.sums[::-1], self.counts[::-1], out=np.zeros(BINS), where=self.counts[::-1] > 0)
        return float((taken * means).sum()) / total

    def tail_exponent(self, above_share: float) -> float | None:
        """Hill's estimate of the Pareto exponent of the values above the quantile `above_share`."""
        start = self.quantile(above_share)
        used = start < _CENTRES
        tail, excess = self.counts[used], np.log(_CENTRES[used] / start) if start > 0 else np.empty(0)
        mean_excess = float((tail * excess).sum()) / float(tail.sum()) if start > 0 and tail.sum() else 0.0
        return 1 / mean_excess if mean_excess > 0 else None


def quantile_of(counts: Floats, sums: Floats, share: float, *, largest: float) -> float:
    """The quantile of bins; `largest` is the greatest value counted."""
    total = float(counts.sum())
    if not total or share >= 1:
        return largest if total else 0.0
    # For a share of 0 it is the least value counted, not the first bin.
    wanted = max(share * total * (1 - 1e-12), np.finfo(np.float64).tiny)
    place = int(np.searchsorted(np.cumsum(counts), wanted, side="left"))
    place = min(place, BINS - 1)
    return float(sums[place] / counts[place]) if counts[place] else 0.0


def places(values: Floats) -> npt.NDArray[np.int64]:
    """The bin of each value."""
    logs = np.log(np.maximum(values, SMALLEST))
    bins = ((logs - _FIRST) / STEP).astype(np.int64) + 1
    return np.where(values < SMALLEST, 0, np.minimum(bins, BINS - 1))


STEP = 0.02
SMALLEST, LARGEST = 1e-6, 1e15
"""A microsecond, if these are seconds; a petabyte, if these are bytes."""
_FIRST = float(np.log(SMALLEST))
BINS: int = int((np.log(LARGEST) - _FIRST) / STEP) + 2
_CENTRES: Floats = np.concatenate([[0.0], np.exp(_FIRST + (np.arange(BINS - 1) + 0.5) * STEP)])
