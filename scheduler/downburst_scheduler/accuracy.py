"""Predictions set against what sites measured under the same plan."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from downburst.clock import to_us
from downburst.ledger import Book
from downburst.model import LatencyKind, Plan, SketchRow, Transport
from downburst.sketch import LatencySketch
from downburst_scheduler.calibration import Quantiles


def with_measurement(book: Book, plan: Plan, *, now: datetime) -> Plan | None:
    """The plan with what was measured under it, up to an hour back; None while there is nothing that was not told."""
    first_minute = max(to_us(plan.made_at), to_us(now - LOOKED_BACK)) // 60_000_000
    rows = book.latency.rows(since_minute=first_minute, feed=plan.feed, kind=LatencyKind.DISTRIBUTION)
    return compared(plan, rows)


def latencies_by_transport(book: Book, plan: Plan, *, now: datetime, window_s: float) -> dict[Transport, Quantiles]:
    """What the plan's legs delivered in the window, minutes of the plan alone, where it is telling."""
    since = max(to_us(plan.made_at) // 60_000_000 + 1, to_us(now - timedelta(seconds=window_s)) // 60_000_000)
    found = {}
    for transport in {leg.transport for leg in plan.legs}:
        rows = book.latency.rows(
            since_minute=since, feed=plan.feed, transport=transport, kind=LatencyKind.DISTRIBUTION
        )
        measured = LatencySketch.of_rows(rows)
        p50_ms, p99_ms = measured.quantile_ms(0.5), measured.quantile_ms(0.99)
        if measured.count >= TELLING_PAIRS and p50_ms is not None and p99_ms is not None:
            found[transport] = Quantiles(p50_ms, p99_ms)
    return found


def compared(plan: Plan, rows: Iterable[SketchRow]) -> Plan | None:
    """The plan with figures for the rows that its own legs produced."""
    transports = {leg.transport for leg in plan.legs}
    measured = LatencySketch.of_rows(row for row in rows if row.transport in transports)
    if measured.count == 0 or measured.count == plan.figures.get("measured_count"):
        return None
    figures = dict(plan.figures) | {
        "measured_count": measured.count,
        "measured_negative": measured.negative,
        "measured_bound_ms": measured.bound_ms,
    }
    for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (1.0, "max")):
        value_ms = measured.quantile_ms(share)
        figures[f"measured_{name}_ms"] = value_ms
        figures[f"measured_over_predicted_{name}"] = _ratio(value_ms, plan.figures.get(f"predicted_{name}_ms"))
    figures["predicted_over_measured"] = _inverse(figures["measured_over_predicted_p99"])
    return replace(plan, figures=figures)


def _ratio(measured_ms: float | None, predicted_ms: object) -> float | None:
    """A ratio says something only of two positive latencies."""
    if measured_ms is None or not isinstance(predicted_ms, (int, float)):
        return None
    return measured_ms / predicted_ms if measured_ms > 0 and predicted_ms > 0 else None


def _inverse(ratio: object) -> float | None:
    return 1 / ratio if isinstance(ratio, float) and ratio else None


LOOKED_BACK = timedelta(hours=1)
TELLING_PAIRS = 100
"""Products and sites: fewer have no 99th percentile."""
