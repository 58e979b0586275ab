"""Routes of the last day: the strip of sites, and the hub's traffic."""

from typing import Annotated

from fastapi import APIRouter, Query

from downburst.domain.feeds import TrafficMinute
from downburst.domain.latency import QUARTER_MINUTES
from downburst.domain.plans import EgressQuarter
from downburst.foundation.clock import from_us, to_us
from downburst.ledger import Transaction
from downburst_api.http.parameters import Hub
from downburst_api.strip.cells import Day, row_out, rows_of
from downburst_api.strip.facts import StripFacts, strip_sites
from downburst_api.strip.history import points_of, today_of
from downburst_api.strip.memory import REPORTED_MINUTES
from downburst_contract.now import strip as shapes

router = APIRouter(prefix="/v1/now", tags=["overview"])
Hours = Annotated[int, Query(ge=1, le=24, description="Length of the period.")]


@router.get("/strip")
async def now_strip(
    hub: Hub,
    *,
    site: Annotated[str | None, Query(max_length=63, description="Only this site.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Rows; the other sites are summed up in one.")] = 10,
    hours: Hours = 24,
) -> shapes.Strip:
    """Sites by the quarter hour, the worst first: the worst feed as a share of its objective."""
    memory = hub.overview.strip
    read, quarters, present = await memory.day(), memory.quarters(hours), await memory.present()
    until = to_us(hub.clock.now()) // 60_000_000 - REPORTED_MINUTES

    def look(tx: Transaction) -> StripFacts:
        if site is not None:
            tx.sites.one(site)
        return StripFacts.read(tx, since_minute=quarters[0], until_minute=until)

    facts = await hub.ledger.read(look)
    sites, never_connected = strip_sites(
        [one for one in facts.sites if site in (None, one.name)],
        hub.live,
        wanting=facts.wanting,
        standings=facts.standings,
        whole=present.whole if present else {},
        downs=facts.downs,
    )
    day = Day(quarters, read, facts.arrived, present.worst if present else {}, present.due if present else ())
    rows, others = rows_of(sites, day, limit=limit)
    return shapes.Strip(
        quarters=[from_us(at * 60_000_000) for at in quarters],
        rows=[shapes.StripRow(**row_out(row)) for row in rows],
        others=None if others is None else shapes.StripRow(**row_out(others)),
        never_connected=never_connected,
    )


@router.get("/history")
async def now_history(hub: Hub, *, hours: Hours = 24) -> shapes.NowHistory:
    """Rates in and out, the saved share and the worst latency by the quarter hour, and the sums of the day."""
    memory = hub.overview.strip
    read, quarters = await memory.day(), memory.quarters(hours)
    now = hub.clock.now()
    midnight = to_us(now.replace(hour=0, minute=0, second=0, microsecond=0)) // 60_000_000
    # A quarter hour more shows whether the hub counted at midnight.
    since = min(quarters[0], midnight - QUARTER_MINUTES)

    def look(tx: Transaction) -> tuple[list[TrafficMinute], list[EgressQuarter]]:
        feeds, until = [feed.name for feed in tx.feeds.all()], quarters[-1] + QUARTER_MINUTES
        arrived = tx.measured.traffic.quarters(feeds, since_minute=since, until_minute=until)
        return arrived, tx.measured.egress.quarters(since_minute=since)

    arrived, sent = await hub.ledger.read(look)
    return shapes.NowHistory(
        points=[shapes.TrafficPoint(**point) for point in points_of(quarters, arrived, sent, read, now)],
        today=shapes.TrafficToday(**today_of(arrived, sent, midnight_minute=midnight)),
        egress_capacity_bps=hub.settings.egress_capacity_bps,
        latency_read=all(at in read for at in quarters),
    )
