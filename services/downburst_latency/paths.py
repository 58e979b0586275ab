"""The latencies of a batch by path, for those who watch products and can't wait for the ledger."""

from collections.abc import Iterable

from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.probes.signs import PathMeasured
from downburst.sketches.sketch import LatencySketch


def measured_paths(rows: Iterable[SketchRow], minute: int) -> tuple[PathMeasured, ...]:
    """The slowest feeds of sites in rows of this minute and the one before it, the slowest first.

    A batch that waited for the hub tells of earlier minutes. Latencies whose clocks were not compared are left out.
    """
    found = [
        PathMeasured(row.site, row.feed, _p99_ms(row), row.bound_ms)
        for row in rows
        if row.kind is LatencyKind.DISTRIBUTION and row.bound_ms is not None and row.minute >= minute - 1
    ]
    return tuple(sorted(found, key=lambda path: path.p99_ms, reverse=True)[:MOST_PATHS])


def _p99_ms(row: SketchRow) -> float:
    if row.count < PART_OF_P99:
        return row.max_ms
    p99_ms = LatencySketch.of_rows([row]).quantile_ms(0.99)
    return row.max_ms if p99_ms is None else p99_ms


MOST_PATHS = 256
PART_OF_P99 = 100
