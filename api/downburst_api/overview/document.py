"""One document with everything the page shows."""

from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Response

from downburst.domain.alarms import Silence
from downburst.domain.events import SiteProgress
from downburst.domain.feeds import Feed
from downburst.domain.plans import LegCounters, Plan
from downburst.domain.sites import Site
from downburst.domain.upstreams import LdmSource, Upstream
from downburst.live.site_states import SiteState
from downburst.live.state import FeedArrivals, LiveState, UpstreamLink
from downburst_api.circuits.shapes import circuit_out
from downburst_api.http.parameters import Hub
from downburst_api.latency.service import figures, latencies_of_feeds, minute_of
from downburst_api.overview.facts import Facts
from downburst_api.overview.now import all_wrong, now_out
from downburst_api.overview.wrong import Wrong, graded, in_order, out
from downburst_api.plans.clause import clause_of
from downburst_api.plans.shapes import plan_out
from downburst_api.runtime import Runtime
from downburst_api.sites.path import seen_of
from downburst_api.sites.shapes import backlog_out, own_clock_out, standing_out
from downburst_contract.overview import Overview

router = APIRouter(prefix="/v1", tags=["overview"])


@router.get("/overview", response_model=Overview)
async def overview(hub: Hub) -> Response:
    """Problems, feeds, plans with reasons, sites, latencies."""
    # The framework's encoder visits each value, which takes seconds for hundreds of sites.
    return Response(await hub.overview.document.fresh(lambda: overview_of(hub)), media_type="application/json")


async def overview_of(hub: Runtime) -> dict[str, Any]:
    """The document as of now."""
    now = hub.clock.now()
    facts: Facts = await hub.overview.facts.read(lambda tx: Facts.read(tx, now))
    since = minute_of(now) - LATENCY_MINUTES + 1
    latencies = await hub.overview.latency.read(lambda tx: latencies_of_feeds(tx, since))
    fan_out = facts.fan_out()
    found = all_wrong(hub, facts, now)
    return {
        "hub": _hub(hub, now),
        "now": now,
        "faults": _faults(found, facts, now),
        **await now_out(hub, facts, found, now),
        "throughput": {
            "in_bps": hub.live.in_bps,
            "out_bps": hub.live.out_bps,
            "unicast_equivalent_bps": hub.live.unicast_equivalent_bps,
            "egress_bytes": sum(row.egress_bytes for row in facts.counters),
            "unicast_equivalent_bytes": sum(row.unicast_equivalent_bytes for row in facts.counters),
        },
        "feeds": [
            _feed(feed, facts, hub.live.arrivals.get(feed.name), latencies.get(feed.name), fan_out[feed.name])
            for feed in facts.feeds
        ],
        "sites": [_site(site, facts, hub, now) for site in facts.sites],
        "circuits": [circuit_out(one, facts.measured, hub.live) for one in facts.circuits],
        "upstreams": [_upstream(one, hub.live.upstreams.get(one.name)) for one in facts.upstreams],
        "ldm_sources": [_ldm_source(one, hub.live) for one in facts.ldm_sources],
    }


def _faults(found: list[Wrong], facts: Facts, now: datetime) -> list[dict[str, Any]]:
    """Present and recent faults, in order of priority."""
    raised = {alarm.key: alarm for alarm in facts.alarms}
    ordered = in_order(graded(found, facts.alarms))
    return [out(one, raised.get(one.key or ""), facts.silences, now) for one in ordered]


def _hub(hub: Runtime, now: datetime) -> dict[str, Any]:
    return {
        "name": hub.settings.name,
        "version": version("downburst"),
        "started_at": hub.started_at,
        "uptime_s": (now - hub.started_at).total_seconds(),
        "node": {"running": hub.node.running, "restarts": hub.node.restarts},
        "probes": {one.name: one.fault or "ok" for one in hub.probes.all()},
    }


def _feed(
    feed: Feed, facts: Facts, arrivals: FeedArrivals | None, latency: dict[str, Any] | None, fan_out: int
) -> dict[str, Any]:
    arrived = arrivals or FeedArrivals()
    rates = arrived.rates_bps
    plan = facts.plans.get(feed.name)
    return {
        "feed": feed.name,
        "class": feed.feed_class,
        "products": arrived.products,
        "bytes": arrived.bytes,
        "rate_bps": arrived.mean_bps(5),
        "rate_history": rates,
        "mean_bps": arrived.mean_bps(),
        "peak_1s_bps": max(rates, default=0.0),
        "peak_60s_bps": _peak_bps(rates, seconds=60),
        "silent_share": rates.count(0.0) / len(rates) if rates else None,
        "fan_out": fan_out,
        "head": arrived.head,
        "plan": None if plan is None else _plan(plan, facts.counters),
        "latency": latency or _NO_LATENCY,
        "objective_ms": feed.objective_ms,
    }


def _plan(plan: Plan, counters: list[LegCounters]) -> dict[str, Any]:
    whole = plan_out(plan, counters)
    kept = (
        "version",
        "transport",
        "reason",
        "pinned",
        "legs",
        "groups",
        "candidates",
        "figures",
        "floor",
        "flip",
        "would_be",
    )
    return {name: whole[name] for name in kept} | {"clause": clause_of(plan), "since": plan.made_at}


def _site(site: Site, facts: Facts, hub: Runtime, now: datetime) -> dict[str, Any]:
    session, known = hub.live.session(site.name), hub.live.paths.of(site.name)
    retry = timedelta(minutes=hub.settings.multicast.retry_minutes)
    offered = [circuit for circuit in facts.circuits if site.name in circuit.sites]
    measured = [row for row in facts.measured if row.site == site.name] if offered else []
    received = facts.standings.received.get(site.name)
    progress = list(session.progress.values()) if session else []
    stands = facts.standings.of(site, hub.live)
    return {
        "site": site.name,
        "organisation": site.organisation,
        "relay": site.name in facts.standings.relays,
        **standing_out(stands),
        "maintenance": _maintenance(site.name, facts.silences, now),
        "stand_by": stands.state is SiteState.STANDS_BY,
        **backlog_out(hub.live.backlog(site.name), now),
        "clock_offset_ms": _ms(session.clock_offset_us if session else None),
        "clock_bound_ms": _ms(session.clock_bound_us if session else None),
        "round_trip_ms": _ms(session.round_trip_us if session else None),
        "own_clock": own_clock_out(session),
        "path": seen_of(site, known, offered, measured, retry=retry),
        "stored": received.stored if received else 0,
        "last_receipt": received.last_receipt_at if received else None,
        "feeds": [_progress(one) for one in progress],
    }


def _progress(one: SiteProgress) -> dict[str, Any]:
    """A site's progress in a feed. Empty values are left out, as there are thousands of these."""
    shown: dict[str, Any] = {
        "feed": one.feed,
        "settled_to": one.settled_to,
        "pending": one.pending,
        "transport": one.transport,
        "leg": one.leg,
    }
    if one.trouble:
        shown["trouble"] = one.trouble
    if one.late:
        shown["late"] = one.late
    if one.action_failed:
        shown["action_failed"] = one.action_failed
    return shown


def _maintenance(site: str, silences: list[Silence], now: datetime) -> dict[str, Any] | None:
    """The current window of maintenance for the whole site, if there is one."""
    for one in silences:
        if one.site == site and one.kind is None and one.feed is None and one.holds(now):
            return {"number": one.number, "until": one.until, "reason": one.reason, "by": one.by}
    return None


def _ldm_source(source: LdmSource, live: LiveState) -> dict[str, Any]:
    def state(name: str) -> dict[str, Any]:
        link = live.ldm.sources.get((source.name, name))
        return {
            "upstream": name,
            "connected": bool(link and link.connections),
            "mode": link.mode if link else "",
            "since": link.since if link else None,
            "reason": link.reason if link else None,
        }

    return {"source": source.name, "feeds": source.feeds, "upstreams": [state(name) for name in source.upstreams]}


def _upstream(upstream: Upstream, link: UpstreamLink | None) -> dict[str, Any]:
    return {
        "upstream": upstream.name,
        "address": upstream.address,
        "feeds": list(upstream.feeds),
        "connected": bool(link and link.connected),
        "since": link.since if link else None,
        "hub": link.hub if link else None,
        "reason": link.reason if link else None,
    }


def _peak_bps(rates: list[float], *, seconds: int) -> float:
    windows = [rates[start : start + seconds] for start in range(max(len(rates) - seconds, 0) + 1)]
    return max((sum(window) / len(window) for window in windows if window), default=0.0)


def _ms(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1000


LATENCY_MINUTES = 60
_NO_LATENCY = {"distribution_ms": figures(()), "end_to_end_ms": figures(()), "history": list[Any]()}
