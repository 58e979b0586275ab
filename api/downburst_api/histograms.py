"""Latencies as cumulative histograms that cost the same however long the history is.

Minutes that can't change any more are counted once and remembered; only the newest are read at each scrape.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from downburst.model import SketchRow
from downburst.sketch import value_of

Labels = tuple[str, str, str, str]
"""Feed, transport, site, kind."""


@dataclass(slots=True)
class Histogram:
    """Counts by upper bound, not yet summed up, and the sum of all values."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    sum_s: float = 0.0

    def add(self, row: SketchRow) -> None:
        """Counts what a sketch holds."""
        self.sum_s += row.sum_ms / 1000
        for bucket, count in row.buckets.items():
            value_s = value_of(bucket) / 1000
            place = next((at for at, bound in enumerate(BOUNDS_S) if value_s <= bound), len(BOUNDS_S))
            self.counts[place] += count

    def cumulative(self) -> list[tuple[str, float]]:
        """The counts as Prometheus wants them: up to each bound."""
        sums = [sum(self.counts[: at + 1]) for at in range(len(self.counts))]
        return [(_text(bound), total) for bound, total in zip((*BOUNDS_S, math.inf), sums, strict=True)]

    def copy(self) -> "Histogram":
        """One that can be added to without changing this one."""
        return Histogram(list(self.counts), self.sum_s)


class Histograms:
    """All histograms of a hub."""

    def __init__(self) -> None:
        self._remembered: dict[Labels, Histogram] = {}
        self.first_open_minute = 0
        """Rows of earlier minutes are remembered and need not be read again."""

    def with_rows(self, rows: Iterable[SketchRow], *, now_minute: int) -> Iterator[tuple[Labels, Histogram]]:
        """Every histogram with these rows, all of which lie in open minutes; closes minutes that are old enough."""
        open_from = max(self.first_open_minute, now_minute - OPEN_MINUTES)
        newest: list[SketchRow] = []
        for row in rows:
            if row.minute < open_from:
                self._remembered.setdefault(_labels(row), Histogram()).add(row)
            else:
                newest.append(row)
        self.first_open_minute = open_from
        whole = {labels: histogram.copy() for labels, histogram in self._remembered.items()}
        for row in newest:
            whole.setdefault(_labels(row), Histogram()).add(row)
        yield from sorted(whole.items(), key=lambda item: item[0])


def _labels(row: SketchRow) -> Labels:
    return row.feed, row.transport.value, row.site, row.kind.value


def _text(bound_s: float) -> str:
    return "+Inf" if math.isinf(bound_s) else f"{bound_s:g}"


BOUNDS_S: tuple[float, ...] = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 30, 60, 300, 600),
)
# Sketches are of live products, whose receipts come within minutes or not at all.
OPEN_MINUTES = 15
