"""A mergeable sketch of latencies with a relative accuracy of 2 % (the mapping of DDSketch), as the node writes it.

A value of at least 1 µs lies in bucket ceil(ln(ms) / ln(gamma)), a smaller one in bucket `z`. Buckets of negative
values carry the index of the absolute value behind an `n`, so that the index of a value below 1 ms, which is
negative itself, is never taken for one. Negative values are counted, kept and shown, never clipped.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from downburst.domain.latency import SketchRow

if TYPE_CHECKING:
    from downburst.domain.receipts import Delays


@dataclass(slots=True)
class LatencySketch:
    """Counts of latencies in logarithmic buckets."""

    count: int = 0
    sum_ms: float = 0.0
    min_ms: float = math.inf
    max_ms: float = -math.inf
    negative: int = 0
    bound_ms: float | None = None
    """The largest bound of the clock offsets behind the values; None if no bound was given."""
    buckets: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_rows(cls, rows: Iterable[SketchRow]) -> Self:
        """All of the rows together."""
        sketch = cls()
        for row in rows:
            sketch.merge(row)
        return sketch

    def add(self, value_ms: float, bound_ms: float | None = None) -> None:
        """Counts one value, known to within `bound_ms`."""
        self.count += 1
        self.sum_ms += value_ms
        self.min_ms = min(self.min_ms, value_ms)
        self.max_ms = max(self.max_ms, value_ms)
        self.negative += value_ms < 0
        self.bound_ms = _wider(self.bound_ms, bound_ms)
        self._fill(bucket_of(value_ms), 1)

    def merge(self, other: "LatencySketch | SketchRow | Delays") -> None:
        """Adds the counts of the other; the result equals that of all values in one sketch."""
        if other.count == 0:
            return
        self.count += other.count
        self.sum_ms += other.sum_ms
        self.min_ms = min(self.min_ms, other.min_ms)
        self.max_ms = max(self.max_ms, other.max_ms)
        self.negative += other.negative
        self.bound_ms = _wider(self.bound_ms, other.bound_ms)
        for bucket, count in other.buckets.items():
            self._fill(_canonical(bucket), count)

    def quantile_ms(self, share: float) -> float | None:
        """The value of nearest rank, to within 2 %: of 19 values the p99 is the largest; None without values."""
        if self.count == 0:
            return None
        rank = rank_of(share, self.count)
        seen = 0
        for value_ms, count in sorted((value_of(bucket), count) for bucket, count in self.buckets.items()):
            seen += count
            if seen >= rank:
                return min(max(value_ms, self.min_ms), self.max_ms)
        return self.max_ms

    def mean_ms(self) -> float | None:
        """The exact mean; None while nothing is counted."""
        return self.sum_ms / self.count if self.count else None

    def _fill(self, bucket: str, count: int) -> None:
        self.buckets[bucket] = self.buckets.get(bucket, 0) + count


def rank_of(share: float, count: int) -> int:
    """The place among `count` rising values, from 1, of the smallest that at least `share` of them do not exceed.

    This is the nearest rank (Hyndman & Fan 1996, definition 1). It never shows a value between two that were
    measured, and with few values it shows the worst rather than one that was better.
    """
    return max(math.ceil(share * count - RANK_SLACK), 1)


def bucket_of(value_ms: float) -> str:
    """The name of the bucket that holds a value."""
    size_ms = abs(value_ms)
    if size_ms < SMALLEST_MS:
        return ZERO_BUCKET
    index = math.ceil(math.log(size_ms) / math.log(GAMMA))
    return f"{NEGATIVE_PREFIX}{index}" if value_ms < 0 else str(index)


def value_of(bucket: str) -> float:
    """The representative value of a bucket in milliseconds, at most 2 % off any value in it."""
    if bucket == ZERO_BUCKET:
        return 0.0
    size_ms = 2 * GAMMA ** int(bucket.removeprefix(NEGATIVE_PREFIX)) / (GAMMA + 1)
    return -size_ms if bucket.startswith(NEGATIVE_PREFIX) else size_ms


def check_buckets(buckets: Mapping[str, int], *, count: int) -> None:
    """Raises ValueError if a bucket has no readable name or the buckets don't hold `count` values."""
    for bucket, held in buckets.items():
        value_of(bucket)
        if held < 0:
            raise ValueError(f"bucket {bucket} holds {held} values")
    if sum(buckets.values()) != count:
        raise ValueError(f"the buckets hold {sum(buckets.values())} values, the sketch counts {count}")


def _canonical(bucket: str) -> str:
    """Writers differ in the sign of index zero."""
    return bucket.removesuffix("-0") + "0" if bucket in ("-0", f"{NEGATIVE_PREFIX}-0") else bucket


def _wider(one_ms: float | None, other_ms: float | None) -> float | None:
    known = [bound for bound in (one_ms, other_ms) if bound is not None]
    return max(known, default=None)


GAMMA = 1.02 / 0.98
SMALLEST_MS = 0.001
"""The resolution of a stamp; anything nearer to zero counts as zero."""
RANK_SLACK = 1e-9
"""A share such as 0.07 is a little more than that as a binary number, which must not cost a rank."""
ZERO_BUCKET = "z"
NEGATIVE_PREFIX = "n"
