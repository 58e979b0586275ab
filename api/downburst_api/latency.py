"""Latency: percentiles per feed, site and transport, from the sketches in the ledger."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from downburst.clock import from_us
from downburst.ledger import Book
from downburst.model import LatencyKind, SketchRow, Transport
from downburst.sketch import LatencySketch
from downburst_api.runtime import Runtime, runtime_of

router = APIRouter(prefix="/v1", tags=["latency"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Minutes = Annotated[int, Query(ge=1, le=60 * 24 * 366, description="How far back to look.")]


@router.get("/latency")
async def latency(
    hub: Hub,
    *,
    feed: str | None = None,
    site: str | None = None,
    transport: Transport | None = None,
    kind: LatencyKind | None = None,
    minutes: Minutes = 60,
) -> list[dict[str, Any]]:
    """p50, p95, p99 and worst latency of each feed, site and transport, with the bound of the clocks."""
    since = minute_of(hub.clock.now()) - minutes + 1

    def rows(book: Book) -> list[SketchRow]:
        if feed is not None:
            book.feeds.one(feed)
        if site is not None:
            book.sites.one(site)
        return book.latency.rows(since_minute=since, feed=feed, site=site, transport=transport, kind=kind)

    return by_path(await hub.ledger.read(rows))


def by_path(rows: Iterable[SketchRow]) -> list[dict[str, Any]]:
    """Rows merged over minutes: one entry for each feed, site, transport and kind."""
    grouped: defaultdict[tuple[str, str, str, str], list[SketchRow]] = defaultdict(list)
    for row in rows:
        grouped[row.feed, row.site, row.transport, row.kind].append(row)
    return [
        {"feed": feed, "site": site, "transport": transport, "kind": kind, **figures(group)}
        for (feed, site, transport, kind), group in sorted(grouped.items())
    ]


def figures(rows: Iterable[SketchRow]) -> dict[str, Any]:
    """The figures of rows merged into one; None where nothing is counted. All but the counts are in milliseconds."""
    sketch = LatencySketch.of_rows(rows)
    return {
        "p50": sketch.quantile_ms(0.5),
        "p95": sketch.quantile_ms(0.95),
        "p99": sketch.quantile_ms(0.99),
        "max": sketch.max_ms if sketch.count else None,
        "count": sketch.count,
        "negative": sketch.negative,
        "bound": sketch.bound_ms,
    }


def history(rows: Iterable[SketchRow]) -> list[dict[str, Any]]:
    """p50 and p99 by the minute, oldest first."""
    minutes: defaultdict[int, list[SketchRow]] = defaultdict(list)
    for row in rows:
        minutes[row.minute].append(row)
    listed = []
    for minute, group in sorted(minutes.items()):
        sketch = LatencySketch.of_rows(group)
        at = from_us(minute * 60_000_000)
        listed.append({"minute": at, "p50": sketch.quantile_ms(0.5), "p99": sketch.quantile_ms(0.99)})
    return listed


def minute_of(instant: datetime) -> int:
    """Minutes since 1970."""
    return int(instant.timestamp() // 60)
