"""Latency: percentiles per feed, site and transport, from the sketches in the ledger."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from downburst.domain.latency import LatencyKind
from downburst.domain.plans import Transport
from downburst.foundation.clock import from_us
from downburst.foundation.errors import BadInput
from downburst.foundation.moments import moment
from downburst.ledger import Transaction
from downburst.ledger.repositories.latency.selection import Selection
from downburst.sketches.sheet import Path
from downburst_api.border.site_rights import check_feed_shown
from downburst_api.http.pagination import Cursor, page_of, read_cursor
from downburst_api.http.parameters import Asking, Hub
from downburst_api.http.spreadsheet import Asked, Form, csv_answer
from downburst_api.latency.heat import HeatFacts, HeatRange, rows_out
from downburst_api.latency.service import figures_of, latencies, minute_of, objective_of, range_out
from downburst_api.strip.memory import REPORTED_MINUTES
from downburst_contract.latency import Figures, Heat, HeatRow, LatencyHistory, LatencyPoint, PathLatency

MOST_PATHS = 2_000

router = APIRouter(prefix="/v1", tags=["latency"])
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
) -> list[PathLatency]:
    """p50, p95, p99 and worst latency of each feed, site and transport, with the bound of the clocks."""
    now = minute_of(hub.clock.now())
    wanted = Selection(now - minutes + 1, feed=feed, site=site, transport=transport, kind=kind)
    after = None if cursor is None else Path(*read_cursor(cursor, str, str, str, str))

    def work(tx: Transaction) -> Sequence[PathLatency]:
        if feed is not None:
            check_feed_shown(tx, caller, feed)
        if site is not None:
            tx.sites.one(site)
        return [PathLatency(**row) for row in latencies(tx, wanted, after=after, limit=limit + 1)]

    return page_of(await hub.ledger.read(work), limit, _KEY, answer, asked)


@router.get("/latency/history", response_model=LatencyHistory)
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
        Literal["minute", "5-minutes", "hour", "day"] | None,
        Query(description="Steps of a minute or five cover at most one day, steps of an hour 62 days."),
    ] = None,
    form: Asked,
) -> LatencyHistory | Response:
    """Latency over time: by the minute for up to a day, by the day for more. Any range of the last year."""
    now = hub.clock.now()
    end = minute_of(now if until is None else moment(until, now)) + 1
    step = step or ("minute" if minutes <= MINUTES_A_DAY else "day")
    length, longest = STEPS[step]
    if minutes > longest:
        raise BadInput(f"{minutes} minutes by the {step} are too many points; ask for longer steps or for less time")
    wanted = Selection(end - minutes, end, feed, site, transport, kind)

    def work(tx: Transaction) -> tuple[list[dict[str, Any]], float | None]:
        check_feed_shown(tx, caller, feed)
        steps, merged = tx.measured.latency.sheet(wanted, step_minutes=length).by_step(length)
        times = (from_us(begin * length * 60_000_000) for begin in steps.tolist())
        points = [{"at": at, **found} for at, found in zip(times, figures_of(merged), strict=True)]
        return points, objective_of(tx, wanted)

    points, objective_ms = await hub.ledger.read(work)
    if form is Form.CSV:
        return csv_answer(f"latency-{feed}-{site or 'all'}", points, ("at", *FIGURES))
    told = [LatencyPoint(**point) for point in points]
    times = range_out(end - minutes, end)
    return LatencyHistory(step_minutes=length, **times, objective_ms=objective_ms, points=told)


@router.get("/latency/heat")
async def latency_heat(  # noqa: PLR0913
    hub: Hub,
    caller: Asking,
    *,
    feed: str,
    site: Annotated[str | None, Query(max_length=63, description="Only this site.")] = None,
    minutes: Minutes = 1_440,
    until: Annotated[str | None, Query(description="The end: RFC 3339, or how long ago; now if left out.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Sites; the worst ones.")] = 12,
) -> Heat:
    """Latency by site and time: p99 by the hour for up to a week, by the day for more, the worst site first."""
    now = hub.clock.now()
    wanted = HeatRange.of(minutes, minute_of(now if until is None else moment(until, now)) + 1)

    def work(tx: Transaction) -> list[dict[str, Any]]:
        check_feed_shown(tx, caller, feed)
        if site is not None:
            tx.sites.one(site)
        facts = HeatFacts.read(tx, hub.live, wanted, feed=feed, reported=minute_of(now) - REPORTED_MINUTES)
        return rows_out(facts, wanted, feed=feed, site=site)

    rows = await hub.ledger.read(work)
    return Heat(
        step_minutes=wanted.step,
        steps=[from_us(at * 60_000_000) for at in wanted.steps],
        rows=[HeatRow(**row) for row in rows[:limit]],
        others=max(len(rows) - limit, 0),
    )


MINUTES_A_DAY = 1_440
STEPS = {
    "minute": (1, MINUTES_A_DAY),
    "5-minutes": (5, MINUTES_A_DAY),
    "hour": (60, 62 * MINUTES_A_DAY),
    "day": (MINUTES_A_DAY, 366 * MINUTES_A_DAY),
}
"""Length of a step, and the longest range for it, so that a history has at most 1,488 points."""
_KEY = ("feed", "site", "transport", "kind")
FIGURES = tuple(Figures.model_fields)
