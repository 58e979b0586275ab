"""What an operator may publish beside latency: the volume of feeds, and who feeds whom."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from downburst.access import Caller
from downburst.clock import from_us
from downburst.ledger import Book
from downburst.live import LiveState
from downburst.model import Site, TrafficMinute, Upstream
from downburst.moments import moment
from downburst_api.csv_out import Asked, Form, csv_answer
from downburst_api.guard import caller_of
from downburst_api.latency import minute_of, range_out
from downburst_api.rights import check_feed_shown
from downburst_api.runtime import Runtime, runtime_of

router = APIRouter(prefix="/v1", tags=["latency"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]
Minutes = Annotated[int, Query(ge=1, le=525_600, description="Length of the period.")]


@router.get("/volume", response_model=None)
async def volume(hub: Hub, *, minutes: Minutes = 1_440, form: Asked) -> dict[str, Any] | Response:
    """Volume of each feed: mean and greatest hour, share of all, products an hour; the largest feed first."""
    end = minute_of(hub.clock.now()) + 1
    asked_since = end - minutes

    def work(book: Book) -> tuple[list[TrafficMinute], int | None]:
        return book.traffic.spans(since_minute=asked_since), book.traffic.first_minute(since_minute=0)

    found, first = await hub.ledger.read(work)
    # A hub that is younger than what is asked for has not been silent before it was there.
    since = end if first is None else min(max(asked_since, first), end)
    rows = volumes(found, begin=since, end=end)
    if form is Form.CSV:
        return csv_answer("volume", rows, VOLUMES)
    return {
        "minutes": minutes,
        "since": from_us(since * 60_000_000),
        "hours_seen": (end - since) / 60,
        "bytes": sum(row["bytes"] for row in rows),
        "feeds": rows,
    }


@router.get("/volume/history", response_model=None)
async def volume_history(
    hub: Hub,
    caller: Asking,
    *,
    feed: str,
    minutes: Minutes = 1_440,
    until: Annotated[str | None, Query(description="The end: RFC 3339, or how long ago; now if left out.")] = None,
    form: Asked,
) -> dict[str, Any] | Response:
    """Volume of a feed: by the minute for up to six hours, by the hour for up to two weeks, else by the day."""
    await hub.ledger.read(lambda book: check_feed_shown(book, caller, feed))
    now = hub.clock.now()
    end = minute_of(now if until is None else moment(until, now)) + 1
    found = await hub.ledger.read(lambda book: book.traffic.minutes(since_minute=end - minutes, feed=feed))
    step = 1 if minutes <= MINUTES_BY_MINUTE else 60 if minutes <= MINUTES_BY_HOUR else 1_440
    points = arrivals((one for one in found if one.minute < end), step)
    if form is Form.CSV:
        return csv_answer(f"volume-{feed}", points, ("at", "products", "bytes", "peak_1s_bytes"))
    return {"step_minutes": step, **range_out(end - minutes, end), "points": points}


@router.get("/tree")
async def tree(hub: Hub) -> dict[str, Any]:
    """The distribution tree: upstreams, this hub, its sites with their feeds; no addresses, no contacts."""
    upstreams, sites, wanted = await hub.ledger.read(_related)
    return {
        "hub": hub.settings.name,
        "upstreams": [_upstream(one, hub.live) for one in upstreams],
        "sites": [_site(one, wanted[one.name], hub.live) for one in sites if one.active],
    }


def arrivals(minutes: Iterable[TrafficMinute], step_minutes: int) -> list[dict[str, Any]]:
    """What came in each step, oldest first; steps in which nothing came are left out."""
    steps: defaultdict[int, list[TrafficMinute]] = defaultdict(list)
    for one in minutes:
        if one.products:
            steps[one.minute // step_minutes].append(one)
    return [
        {
            "at": from_us(step * step_minutes * 60_000_000),
            "products": sum(one.products for one in some),
            "bytes": sum(one.bytes for one in some),
            "peak_1s_bytes": max(one.peak_1s_bytes for one in some),
        }
        for step, some in sorted(steps.items())
    ]


def volumes(minutes: Iterable[TrafficMinute], *, begin: int, end: int) -> list[dict[str, Any]]:
    """A row for each feed, of the minutes from `begin` on and before `end`."""
    edges = hours_between(begin, end)
    products: defaultdict[str, int] = defaultdict(int)
    by_hour: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(edges) - 1))
    for one in minutes:
        products[one.feed] += one.products
        by_hour[one.feed][min(bisect_right(edges, one.minute, hi=len(edges) - 1), len(edges) - 1) - 1] += one.bytes
    sums = {feed: sum(its_hours) for feed, its_hours in by_hour.items()}
    everything, hours = sum(sums.values()), max(end - begin, 1) / 60
    lengths = [(after - before) / 60 for before, after in pairwise(edges)]
    return [
        {
            "feed": feed,
            "bytes": size,
            "products": products[feed],
            "mean_bytes_per_hour": size / hours,
            "max_bytes_per_hour": max(held / length for held, length in zip(by_hour[feed], lengths, strict=True)),
            "share": size / everything if everything else 0.0,
            "products_per_hour": products[feed] / hours,
        }
        for feed, size in sorted(sums.items(), key=lambda one: (-one[1], one[0]))
    ]


def hours_between(begin: int, end: int) -> list[int]:
    """The edges, in minutes, of the hours of which the greatest is sought: hours of the clock.

    A part of an hour at either end goes to its neighbour, so that a busy minute does not count sixty times. The hours
    fill the range, and their rates are compared, not their sums: the mean is never above the greatest.
    """
    edges = [edge for edge in range(-(-begin // 60) * 60, end + 1, 60) if begin <= edge <= end]
    if len(edges) < 2:
        return [begin, max(end, begin + 1)]
    return [begin, *edges[1:-1], max(end, begin + 1)]


def _related(book: Book) -> tuple[list[Upstream], list[Site], dict[str, list[str]]]:
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    sites = book.sites.all()
    allowed = {site.name: site for site in sites}
    for wish in book.subscriptions.all():
        if allowed[wish.site].may_take(wish.feed) and wish.feed not in wanted[wish.site]:
            wanted[wish.site].append(wish.feed)
    return book.upstreams.all(), sites, wanted


def _upstream(upstream: Upstream, live: LiveState) -> dict[str, Any]:
    link = live.upstreams.get(upstream.name)
    return {"upstream": upstream.name, "connected": bool(link and link.connected), "feeds": list(upstream.feeds)}


def _site(site: Site, feeds: list[str], live: LiveState) -> dict[str, Any]:
    session = live.session(site.name)
    progress = session.progress if session is not None and session.connected else {}
    return {
        "site": site.name,
        "organisation": site.organisation,
        "connected": bool(session and session.connected),
        "feeds": [
            {"feed": feed, "transport": progress[feed].transport if feed in progress else None}
            for feed in sorted(feeds)
        ],
    }


VOLUMES = ("feed", "bytes", "products", "mean_bytes_per_hour", "max_bytes_per_hour", "share", "products_per_hour")
MINUTES_BY_MINUTE = 360
MINUTES_BY_HOUR = 14 * 1_440
