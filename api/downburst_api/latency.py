"""Latency: percentiles per feed, site and transport, from the sketches in the ledger."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from downburst.access import Caller
from downburst.clock import from_us
from downburst.errors import BadInput
from downburst.ledger import Book
from downburst.ledger.latency_selection import Selection
from downburst.model import LatencyKind, SketchRow, Transport
from downburst.moments import moment
from downburst.sheet import Merged, Path
from downburst.sketch import LatencySketch
from downburst_api.csv_out import Asked, Form, csv_answer
from downburst_api.guard import caller_of
from downburst_api.pages import Cursor, page_of, read_cursor
from downburst_api.rights import check_feed_shown
from downburst_api.runtime import Runtime, runtime_of

MOST_PATHS = 2_000

router = APIRouter(prefix="/v1", tags=["latency"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]
Minutes = Annotated[int, Query(ge=1, le=60 * 24 * 366, description="Length of the period.")]


@router.get("/latency")
async def latency(  # noqa: PLR0913
    hub: Hub,
    caller: Asking,
    answer: Response,
    asked: Request,
    *,
    feed: str | None = None,
    site: str | None = None,
    transport: Transport | None = None,
    kind: LatencyKind | None = None,
    minutes: Minutes = 60,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PATHS)] = MOST_PATHS // 2,
) -> list[dict[str, Any]]:
    """p50, p95, p99 and worst latency of each feed, site and transport, with the bound of the clocks."""
    now = minute_of(hub.clock.now())
    wanted = Selection(now - minutes + 1, feed=feed, site=site, transport=transport, kind=kind)
    after = None if cursor is None else Path(*read_cursor(cursor, str, str, str, str))

    def work(book: Book) -> list[dict[str, Any]]:
        if feed is not None:
            check_feed_shown(book, caller, feed)
        if site is not None:
            book.sites.one(site)
        return latencies(book, wanted, after=after, limit=limit + 1)

    return page_of(await hub.ledger.read(work), limit, _KEY, answer, asked)


@router.get("/latency/history", response_model=None)
async def latency_history(  # noqa: PLR0913
    hub: Hub,
    caller: Asking,
    *,
    feed: str,
    site: str | None = None,
    transport: Transport | None = None,
    kind: LatencyKind = LatencyKind.DISTRIBUTION,
    minutes: Minutes = 360,
    until: Annotated[str | None, Query(description="The end: RFC 3339, or how long ago; now if left out.")] = None,
    step: Annotated[
        Literal["minute", "hour", "day"] | None,
        Query(description="Steps of a minute cover at most one day, steps of an hour 62 days."),
    ] = None,
    form: Asked,
) -> dict[str, Any] | Response:
    """Latency over time: by the minute for up to a day, by the day for more. Any range of the last year."""
    now = hub.clock.now()
    end = minute_of(now if until is None else moment(until, now)) + 1
    step = step or ("minute" if minutes <= MINUTES_A_DAY else "day")
    length, longest = STEPS[step]
    if minutes > longest:
        raise BadInput(f"{minutes} minutes by the {step} are too many points; ask for longer steps or for less time")
    wanted = Selection(end - minutes, end, feed, site, transport, kind)

    def work(book: Book) -> list[dict[str, Any]]:
        check_feed_shown(book, caller, feed)
        steps, merged = book.latency.sheet(wanted, step_minutes=length).by_step(length)
        times = (from_us(begin * length * 60_000_000) for begin in steps.tolist())
        return [{"at": at, **found} for at, found in zip(times, figures_of(merged), strict=True)]

    points = await hub.ledger.read(work)
    if form is Form.CSV:
        return csv_answer(f"latency-{feed}-{site or 'all'}", points, ("at", *FIGURES))
    return {"step_minutes": length, **range_out(end - minutes, end), "points": points}


def latencies(book: Book, wanted: Selection, *, after: Path | None = None, limit: int) -> list[dict[str, Any]]:
    """The figures of each path, in their order, from the one behind `after` on; as many as `limit`."""
    feeds = [wanted.feed] if wanted.feed is not None else book.latency.feeds(wanted)
    feeds = [feed for feed in feeds if after is None or feed >= after.feed]
    # So many feeds at once as fill a page: one by one they cost more, all of them may be many pages.
    sites = 1 if wanted.site is not None else max(len(book.sites.all()), 1)
    kinds = 1 if wanted.kind is not None else len(LatencyKind)
    some = max(limit // (sites * kinds), 1)
    found: list[dict[str, Any]] = []
    for at in range(0, len(feeds), some):
        sheet = book.latency.sheet(replace(wanted, feed=None, feeds=tuple(feeds[at : at + some])))
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
        {
            "p50": one,
            "p95": two,
            "p99": three,
            "max": max_us / 1000,
            "count": count,
            "negative": negative,
            "bound": None if bound_us < 0 else bound_us / 1000,
        }
        for one, two, three, max_us, count, negative, bound_us in rows
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


def latencies_of_feeds(book: Book, since_minute: int) -> dict[str, dict[str, Any]]:
    """Of each feed the figures of all its sites together, and p50 and p99 by the minute, oldest first."""
    wanted = Selection(since_minute, kind=LatencyKind.DISTRIBUTION)
    by_minute = book.latency.sheet(wanted, step_minutes=1).by_feed()
    end_to_end = book.latency.sheet(replace(wanted, kind=LatencyKind.END_TO_END)).by_feed()
    found: dict[str, dict[str, Any]] = {}
    for name, sheet in (("distribution_ms", by_minute), ("end_to_end_ms", end_to_end)):
        for path, some in zip(sheet.paths, figures_of(sheet.by_path()), strict=True):
            nothing = {"distribution_ms": figures(()), "end_to_end_ms": figures(()), "history": list[Any]()}
            if some["count"]:
                found.setdefault(path.feed, nothing)[name] = some
    paths, minutes, merged = by_minute.by_path_and_step(1)
    p50, p99 = (values.tolist() for values in merged.quantiles_ms(0.5, 0.99))
    for at, minute, middle, high in zip(paths.tolist(), minutes.tolist(), p50, p99, strict=True):
        point = {"minute": from_us(minute * 60_000_000), "p50": middle, "p99": high}
        found[by_minute.paths[at].feed]["history"].append(point)
    return found


def range_out(begin: int, end: int) -> dict[str, datetime]:
    """The range that was asked for: what is drawn covers all of it, wherever the points begin."""
    return {"from": from_us(begin * 60_000_000), "to": from_us(end * 60_000_000)}


def minute_of(instant: datetime) -> int:
    """Minutes since 1970."""
    return int(instant.timestamp() // 60)


MINUTES_A_DAY = 1_440
STEPS = {
    "minute": (1, MINUTES_A_DAY),
    "hour": (60, 62 * MINUTES_A_DAY),
    "day": (MINUTES_A_DAY, 366 * MINUTES_A_DAY),
}
"""How long a step is, and how far it is told, so that a history has at most 1,488 points."""
_KEY = ("feed", "site", "transport", "kind")
FIGURES = ("p50", "p95", "p99", "max", "count", "negative", "bound")
