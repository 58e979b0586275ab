"""Percentiles of latencies, from the sketches in the ledger."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from downburst.domain.latency import LatencyKind, SketchRow, certainty_of
from downburst.foundation.clock import from_us
from downburst.ledger import Transaction
from downburst.ledger.repositories.latency.selection import Selection
from downburst.sketches.sheet import Merged, Path
from downburst.sketches.sketch import LatencySketch
from downburst_api.strip.worst import Objectives


def latencies(tx: Transaction, wanted: Selection, *, after: Path | None = None, limit: int) -> list[dict[str, Any]]:
    """The figures of up to `limit` paths, in their order, from the first after `after` on."""
    feeds = [wanted.feed] if wanted.feed is not None else tx.measured.latency.feeds(wanted)
    feeds = [feed for feed in feeds if after is None or feed >= after.feed]
    # Reads a page's number of feeds at a time: single reads cost more, all feeds may be many pages.
    sites = 1 if wanted.site is not None else max(len(tx.sites.all()), 1)
    kinds = 1 if wanted.kind is not None else len(LatencyKind)
    some = max(limit // (sites * kinds), 1)
    found: list[dict[str, Any]] = []
    for at in range(0, len(feeds), some):
        sheet = tx.measured.latency.sheet(replace(wanted, feed=None, feeds=tuple(feeds[at : at + some])))
        listed = sorted(zip(sheet.paths, figures_of(sheet.by_path()), strict=True), key=lambda one: one[0])
        found += [path._asdict() | one for path, one in listed if one["count"] and (after is None or path > after)]
        if len(found) >= limit:
            break
    return found[:limit]


def figures_of(merged: Merged) -> list[dict[str, Any]]:
    """The figures of each group, as `figures` gives them."""
    p50, p95, p99 = (values.tolist() for values in merged.quantiles_ms(0.5, 0.95, 0.99))
    columns = (merged.max_us, merged.count, merged.negative, merged.bound_us)
    rows = zip(p50, p95, p99, *(column.tolist() for column in columns), strict=True)
    return [
        {"p50": one, "p95": two, "p99": three, "max": max_us / 1000, "count": count, "negative": negative}
        | _known(one, bound_us)
        for one, two, three, max_us, count, negative, bound_us in rows
    ]


def figures(rows: Iterable[SketchRow]) -> dict[str, Any]:
    """The figures of the merged rows; None without counts. All but the counts are in milliseconds."""
    sketch = LatencySketch.of_rows(rows)
    median = sketch.quantile_ms(0.5)
    return {
        "p50": median,
        "p95": sketch.quantile_ms(0.95),
        "p99": sketch.quantile_ms(0.99),
        "max": sketch.max_ms if sketch.count else None,
        "count": sketch.count,
        "negative": sketch.negative,
        "bound": sketch.bound_ms,
        "certainty": certainty_of(median, sketch.bound_ms),
    }


def latencies_of_feeds(tx: Transaction, since_minute: int) -> dict[str, dict[str, Any]]:
    """For each feed the figures of all its sites together, and p50 and p99 by the minute, oldest first."""
    wanted = Selection(since_minute, kind=LatencyKind.DISTRIBUTION)
    by_minute = tx.measured.latency.sheet(wanted, step_minutes=1).by_feed()
    end_to_end = tx.measured.latency.sheet(replace(wanted, kind=LatencyKind.END_TO_END)).by_feed()
    found: dict[str, dict[str, Any]] = {}
    for name, sheet in (("distribution_ms", by_minute), ("end_to_end_ms", end_to_end)):
        for path, some in zip(sheet.paths, figures_of(sheet.by_path()), strict=True):
            nothing = {"distribution_ms": figures(()), "end_to_end_ms": figures(()), "history": list[Any]()}
            if some["count"]:
                found.setdefault(path.feed, nothing)[name] = some
    paths, minutes, merged = by_minute.by_path_and_step(1)
    p50, p99 = (values.tolist() for values in merged.quantiles_ms(0.5, 0.99))
    rows = zip(paths.tolist(), minutes.tolist(), p50, p99, merged.bound_us.tolist(), strict=True)
    for at, minute, middle, high, bound_us in rows:
        point = {"minute": from_us(minute * 60_000_000), "p50": middle, "p99": high} | _known(middle, bound_us)
        found[by_minute.paths[at].feed]["history"].append(point)
    return found


def _known(median_ms: float, bound_us: int) -> dict[str, Any]:
    bound_ms = None if bound_us < 0 else bound_us / 1000
    return {"bound": bound_ms, "certainty": certainty_of(median_ms, bound_ms)}


def objective_of(tx: Transaction, wanted: Selection) -> float | None:
    """The objective of a feed at a site, or of the feed; None for kinds without one."""
    if wanted.feed is None or wanted.kind is not LatencyKind.DISTRIBUTION:
        return None
    return Objectives.read(tx).of(wanted.feed, wanted.site or "")


def range_out(begin: int, end: int) -> dict[str, datetime]:
    """The requested range: charts cover all of it, wherever the points begin."""
    return {"from": from_us(begin * 60_000_000), "to": from_us(end * 60_000_000)}


def minute_of(instant: datetime) -> int:
    """Minutes since 1970."""
    return int(instant.timestamp() // 60)
