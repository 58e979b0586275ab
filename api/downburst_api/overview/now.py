"""Incidents and the sentence of the page *Now*, for the overview and for a route of their own."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query

from downburst.domain.alarms import Severity
from downburst_api.http.parameters import Hub
from downburst_api.overview.facts import Facts
from downburst_api.overview.headline import SiteCounts, status_out
from downburst_api.overview.incidents import Incident, incident_out, incidents_of, of_site
from downburst_api.overview.of_hub import wrong_with_hub
from downburst_api.overview.present import wrong_now
from downburst_api.overview.wrong import Wrong
from downburst_api.runtime import Runtime
from downburst_api.strip.cells import state_now
from downburst_api.strip.facts import strip_sites
from downburst_contract.now.incidents import NowIncidents

router = APIRouter(prefix="/v1/now", tags=["overview"])


@router.get("/incidents")
async def now_incidents(
    hub: Hub, *, site: Annotated[str | None, Query(max_length=63, description="Only this site.")] = None
) -> NowIncidents:
    """The state of the hub in a sentence, and its incidents: the worst first, causes before consequences."""
    now = hub.clock.now()
    facts: Facts = await hub.overview.facts.read(lambda tx: Facts.read(tx, now))
    if site is not None:
        await hub.ledger.read(lambda tx: tx.sites.one(site))
    return NowIncidents(**await now_out(hub, facts, all_wrong(hub, facts, now), now, site=site))


def all_wrong(hub: Runtime, facts: Facts, now: datetime) -> list[Wrong]:
    """Present and recent faults, unordered."""
    # A node's end is shown until it is back; afterwards the journal keeps it as history.
    ends = {end.at for end in hub.live.node.ends}
    lately = [Wrong(one, Severity.WARNING, is_over=True) for one in facts.faults if one.at not in ends]
    return [*wrong_with_hub(hub, now), *wrong_now(hub.live, facts, now), *lately]


async def now_out(
    hub: Runtime, facts: Facts, found: Iterable[Wrong], now: datetime, *, site: str | None = None
) -> dict[str, Any]:
    """The sentence and the incidents of the hub or of a site, for clients."""
    incidents: Sequence[Incident] = incidents_of(found, facts, hub.live, now)
    if site is not None:
        incidents = of_site(incidents, site)
    counts = await _site_counts(hub, facts, site=site)
    shown = incidents[:MOST_INCIDENTS]
    return {
        "status": status_out(incidents, counts, now, site=site),
        "incidents": [incident_out(one, facts, hub.live, now) for one in shown],
    }


async def _site_counts(hub: Runtime, facts: Facts, *, site: str | None) -> SiteCounts:
    present = await hub.overview.strip.present()
    sites, _ = strip_sites(
        [one for one in facts.sites if site in (None, one.name)],
        hub.live,
        wanting={one for _, one in facts.wanted},
        standings=facts.standings,
        whole=present.whole if present else {},
    )
    worst, due = (present.worst, present.due) if present else ({}, frozenset[str]())
    return SiteCounts.of(state_now(one, worst, due).state for one in sites)


MOST_INCIDENTS = 100
"""A failed network takes hundreds of sites with it; the sentence counts all of them."""
