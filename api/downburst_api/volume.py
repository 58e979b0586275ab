"""What an operator may publish beside latency: the volume of feeds, and who feeds whom."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from downburst.ledger import Book
from downburst.live import LiveState
from downburst.model import Site, TrafficMinute, Upstream
from downburst_api.latency import minute_of
from downburst_api.runtime import Runtime, runtime_of

router = APIRouter(prefix="/v1", tags=["latency"])
Hub = Annotated[Runtime, Depends(runtime_of)]


@router.get("/volume")
async def volume(
    hub: Hub, minutes: Annotated[int, Query(ge=1, le=525_600, description="How far back to look.")] = 1_440
) -> dict[str, Any]:
    """What came into each feed: mean and greatest hour, share of all, products an hour; the largest feed first."""
    now_minute = minute_of(hub.clock.now())
    since = now_minute - minutes + 1

    def work(book: Book) -> tuple[list[TrafficMinute], int | None]:
        return book.traffic.spans(since_minute=since), book.traffic.first_minute(since_minute=since)

    found, first = await hub.ledger.read(work)
    # A hub that is younger than what is asked for has not been silent before it was there.
    hours = max(now_minute - (since if first is None else first) + 1, 1) / 60
    rows = volumes(found, hours=hours)
    return {"minutes": minutes, "hours_seen": hours, "bytes": sum(row["bytes"] for row in rows), "feeds": rows}


@router.get("/tree")
async def tree(hub: Hub) -> dict[str, Any]:
    """Who feeds whom and how: upstreams, this hub, its sites with the feeds they take; no addresses, no contacts."""
    upstreams, sites, wanted = await hub.ledger.read(_related)
    return {
        "hub": hub.settings.name,
        "upstreams": [_upstream(one, hub.live) for one in upstreams],
        "sites": [_site(one, wanted[one.name], hub.live) for one in sites if one.active],
    }


def volumes(minutes: Iterable[TrafficMinute], *, hours: float) -> list[dict[str, Any]]:
    """A row for each feed."""
    products: defaultdict[str, int] = defaultdict(int)
    by_hour: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for one in minutes:
        products[one.feed] += one.products
        by_hour[one.feed][one.minute // 60] += one.bytes
    sums = {feed: sum(its_hours.values()) for feed, its_hours in by_hour.items()}
    everything = sum(sums.values())
    return [
        {
            "feed": feed,
            "bytes": size,
            "products": products[feed],
            "mean_bytes_per_hour": size / hours,
            "max_bytes_per_hour": max(by_hour[feed].values()),
            "share": size / everything if everything else 0.0,
            "products_per_hour": products[feed] / hours,
        }
        for feed, size in sorted(sums.items(), key=lambda one: (-one[1], one[0]))
    ]


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
