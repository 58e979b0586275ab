"""Latency: percentiles per feed, site and transport, from the sketches in the ledger."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from downburst.clock import from_us
from downburst.ledger import Book
from downburst.model import LatencyKind, SketchRow, Transport
from downburst.moments import moment
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
        return book.latency.spans(since_minute=since, feed=feed, site=site, transport=transport, kind=kind)

    return by_path(await hub.ledger.read(rows))


@router.get("/latency/history")
async def latency_history(  # noqa: PLR0913
    hub: Hub,
    *,
    feed: str,
    site: str | None = None,
    transport: Transport | None = None,
    kind: LatencyKind = LatencyKind.DISTRIBUTION,
    minutes: Minutes = 360,
    until: Annotated[str | None, Query(description="The end: RFC 3339, or how long ago; now if left out.")] = None,
) -> dict[str, Any]:
    """Latency over time: by the minute for up to a day, by the day for more. Any range of the last year."""
    now = hub.clock.now()
    end = minute_of(now if until is None else moment(until, now)) + 1
    by_day = minutes > MINUTES_A_DAY

    def rows(book: Book) -> list[SketchRow]:
        book.feeds.one(feed)
        look = book.latency.spans if by_day else book.latency.rows
        return look(
            since_minute=end - minutes, until_minute=end, feed=feed, site=site, transport=transport, kind=kind
        )

    step = MINUTES_A_DAY if by_day else 1
    return {"step_minutes": step, "points": points(await hub.ledger.read(rows), step)}


def points(rows: Iterable[SketchRow], step_minutes: int) -> list[dict[str, Any]]:
    """The figures of each step, oldest first."""
    steps: defaultdict[int, list[SketchRow]] = defaultdict(list)
    for row in rows:
        steps[row.minute // step_minutes].append(row)
    return [
        {"at": from_us(step * step_minutes * 60_000_000), **figures(group)} for step, group in sorted(steps.items())
    ]


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


MINUTES_A_DAY = 1_440
