"""One document with everything the page shows."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from downburst.alarms import Alarm, AlarmKind, Silence
from downburst.circuits import Circuit, CircuitState, Measured
from downburst.events import SiteProgress
from downburst.ledger import Book
from downburst.ledger.receipts import Received
from downburst.live import FeedArrivals, LiveState, SiteSession, UpstreamLink
from downburst.model import (
    Fault,
    Feed,
    LdmSource,
    LegCounters,
    Plan,
    Site,
    Upstream,
)
from downburst_api.circuit_schemas import circuit_out
from downburst_api.latency import figures, latencies_of_feeds, minute_of
from downburst_api.path_out import seen_of
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import plan_out

router = APIRouter(prefix="/v1", tags=["overview"])
Hub = Annotated[Runtime, Depends(runtime_of)]


@router.get("/overview")
async def overview(hub: Hub) -> Response:
    """What is wrong, what flows, how and why, who has it, how late."""
    # The framework's encoder takes each value in its hands: seconds, for hundreds of sites.
    return Response(await hub.overview.fresh(lambda: overview_of(hub)), media_type="application/json")


async def overview_of(hub: Runtime) -> dict[str, Any]:
    """The document as of this moment."""
    now = hub.clock.now()
    facts = await hub.ledger.read(lambda book: _facts(book, now))
    since = minute_of(now) - LATENCY_MINUTES + 1
    latencies = await hub.recent_latency.read(lambda book: latencies_of_feeds(book, since))
    fan_out = facts.fan_out()
    return {
        "hub": _hub(hub, now),
        "now": now,
        "faults": _faults(hub.live, facts, now, node_running=hub.node.running),
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


@dataclass(frozen=True, slots=True)
class _Facts:
    feeds: list[Feed]
    sites: list[Site]
    wanted: set[tuple[str, str]]
    """Feed and site of what is subscribed."""
    plans: dict[str, Plan]
    counters: list[LegCounters]
    received: dict[str, Received]
    """By site."""
    upstreams: list[Upstream]
    ldm_sources: list[LdmSource]
    circuits: list[Circuit]
    """Those that have begun, and the next to begin."""
    measured: list[Measured]
    faults: list[Fault]
    alarms: list[Alarm]
    silences: list[Silence]

    def fan_out(self) -> Counter[str]:
        """By feed, how many sites take it."""
        served = {site.name: site for site in self.sites if site.active}
        return Counter(feed for feed, site in self.wanted if site in served and served[site].may_take(feed))


def _facts(book: Book, now: datetime) -> _Facts:
    circuits = [*book.circuits.begun(), *book.circuits.next_to_begin(CIRCUITS_AHEAD)]
    return _Facts(
        circuits=circuits,
        measured=book.circuits.measurements() if circuits else [],
        feeds=book.feeds.all(),
        sites=book.sites.all(),
        wanted=book.subscriptions.pairs(),
        plans={plan.feed: plan for plan in book.plans.all_current()},
        counters=book.legs.counters(),
        received=book.settled.by_site(),
        upstreams=book.upstreams.all(),
        ldm_sources=book.ldm_sources.all(),
        faults=book.faults.recent(since=now - FAULT_SHOWN),
        alarms=book.alarms.open(),
        silences=book.silences.current(),
    )


def _hub(hub: Runtime, now: datetime) -> dict[str, Any]:
    return {
        "name": hub.settings.name,
        "version": version("downburst"),
        "started_at": hub.started_at,
        "uptime_s": (now - hub.started_at).total_seconds(),
        "node": {"running": hub.node.running, "restarts": hub.node.restarts},
        "probes": {one.name: one.fault or "ok" for one in hub.probes.all()},
    }


def _faults(live: LiveState, facts: _Facts, now: datetime, *, node_running: bool) -> list[dict[str, Any]]:
    """What is wrong now, and what went wrong lately, oldest first."""
    found = list(facts.faults)
    if not node_running:
        found.append(Fault(now, "the node is not running, so nothing is taken in or sent", next_step=_NODE_STEP))
    found.extend(
        Fault(warning.since, warning.problem, feed=feed, next_step=warning.step)
        for feed, warning in live.retention_warnings.items()
    )
    found.extend(
        Fault(alarm.since, alarm.sentence, alarm.feed, alarm.site, alarm.next_step)
        for alarm in facts.alarms
        if alarm.kind in _SHOWN_BY_ALARMS_ALONE
    )
    wanting = {site for _, site in facts.wanted}
    for site in facts.sites:
        session = live.session(site.name)
        if site.ldm_host is not None:
            found.extend(_ldm_away(site, live, now) if site.active and site.name in wanting else ())
        elif site.active and site.name in wanting and not (session and session.connected):
            found.append(_away(site, session, since=site.created_at or now))
        if session and session.connected:
            found.extend(_troubles(site, session, now))
    found.extend(_circuits_in_trouble(facts.circuits, facts.measured, now))
    found.extend(_upstreams_away(live, facts.upstreams, now))
    found.extend(_ldm_sources_away(live, facts.ldm_sources, now))
    return [
        {"at": fault.at, "sentence": fault.sentence, "feed": fault.feed, "site": fault.site, "next": fault.next_step}
        for fault in sorted(found, key=lambda fault: fault.at)
    ]


def _troubles(site: Site, session: SiteSession, now: datetime) -> Iterable[Fault]:
    """A site that can't store is connected and takes nothing: its disk is full, or read-only, or failing."""
    step = (
        f"free or mend the disk at {site.organisation or site.name}; the feed goes on by itself, "
        "and nothing is lost while this hub still keeps it"
    )
    for progress in session.progress.values():
        if progress.trouble:
            sentence = f"{site.name} can't store {progress.feed}: {progress.trouble}"
            yield Fault(session.behind_since or now, sentence, progress.feed, site.name, step)


def _away(site: Site, session: SiteSession | None, *, since: datetime) -> Fault:
    if session is None:
        sentence = f"{site.name} has not connected since the hub started"
        step = f"start downburst-node receive there; if it was never enrolled: downburst sites token {site.name}"
        return Fault(since, sentence, site=site.name, next_step=step)
    reason = f": {session.reason}" if session.reason else ""
    step = f"look at the receiver's log at {site.organisation or site.name}; it catches up by itself once it is back"
    return Fault(session.since, f"{site.name} is not connected{reason}", site=site.name, next_step=step)


def _circuits_in_trouble(circuits: list[Circuit], measured: list[Measured], now: datetime) -> Iterable[Fault]:
    """Feeds leave a bad circuit for the routed path, which nothing else here shows."""
    for circuit in circuits:
        if circuit.state in _TROUBLED:
            rows = [row for row in measured if row.circuit == circuit.number and not row.enough]
            remedy = next((row.remedy for row in rows if row.remedy), f"downburst circuits show {circuit.number}")
            sentence = f"circuit {circuit.number} is {circuit.state}: {circuit.reason}"
            yield Fault(circuit.since or now, sentence, site=circuit.sites[0], next_step=remedy)


def _upstreams_away(live: LiveState, upstreams: list[Upstream], now: datetime) -> Iterable[Fault]:
    """A hub that does not answer costs this hub's sites its feeds, and nothing else here shows it."""
    for upstream in upstreams:
        link = live.upstreams.get(upstream.name)
        if link is None or not link.connected:
            reason = f": {link.reason}" if link and link.reason else ""
            sentence = f"nothing comes from the upstream {upstream.name} at {upstream.address}{reason}"
            step = (
                f"ask the operator of {upstream.name} whether that hub runs and still has this one as a site; "
                "it is called again by itself, and what was missed comes then"
            )
            yield Fault(link.since if link else upstream.created_at or now, sentence, next_step=step)


def _ldm_away(site: Site, live: LiveState, now: datetime) -> Iterable[Fault]:
    link = live.ldm_sites.get(site.name)
    if link is None or not link.connections:
        reason = f": {link.reason}" if link and link.reason else ""
        step = (
            f"ask its administrator whether LDM runs there with a REQUEST to this hub; its host must match "
            f"{site.ldm_host} and the setting ldm.listen must open a port: downburst ldm peers"
        )
        sentence = f"no LDM of site {site.name} is connected{reason}"
        yield Fault(link.since if link else site.created_at or now, sentence, site=site.name, next_step=step)


def _ldm_sources_away(live: LiveState, sources: list[LdmSource], now: datetime) -> Iterable[Fault]:
    """Each upstream that is away is said; a source that has none left more loudly."""
    for source in sources:
        links = {name: live.ldm_sources.get((source.name, name)) for name in source.upstreams}
        left = sum(1 for link in links.values() if link and link.connections)
        for name, link in links.items():
            if link is None or not link.connections:
                reason = f": {link.reason}" if link and link.reason else ""
                rest = f"{left} other upstreams go on" if left else f"nothing comes of {source.feeds} by this source"
                sentence = f"the LDM at {name} sends nothing to source {source.name}{reason}; {rest}"
                step = "it is asked again by itself; is LDM running there, with an ALLOW line for this host?"
                yield Fault(link.since if link else source.created_at or now, sentence, next_step=step)


def _feed(
    feed: Feed, facts: _Facts, arrivals: FeedArrivals | None, latency: dict[str, Any] | None, fan_out: int
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
    kept = ("version", "transport", "reason", "pinned", "legs", "candidates", "figures", "flip", "would_be")
    return {name: whole[name] for name in kept} | {"since": plan.made_at}


def _site(site: Site, facts: _Facts, hub: Runtime, now: datetime) -> dict[str, Any]:
    session, known = hub.live.session(site.name), hub.live.paths.of(site.name)
    retry = timedelta(minutes=hub.settings.multicast.retry_minutes)
    offered = [circuit for circuit in facts.circuits if site.name in circuit.sites]
    measured = [row for row in facts.measured if row.site == site.name] if offered else []
    received = facts.received.get(site.name)
    progress = list(session.progress.values()) if session else []
    behind_since = session.behind_since if session else None
    by_ldm = hub.live.ldm_sites.get(site.name) if site.ldm_host is not None else None
    here = by_ldm or session
    return {
        "site": site.name,
        "organisation": site.organisation,
        "connected": bool(by_ldm.connections if by_ldm else session and session.connected),
        "maintenance": _maintenance(site.name, facts.silences, now),
        "stand_by": bool(session and session.connected and session.stand_by),
        "since": here.since if here else None,
        "behind_products": sum(item.pending for item in progress) if progress else None,
        "behind_s": _behind_s(progress_known=bool(progress), since=behind_since, now=now),
        "clock_offset_ms": _ms(session.clock_offset_us if session else None),
        "clock_bound_ms": _ms(session.clock_bound_us if session else None),
        "round_trip_ms": _ms(session.round_trip_us if session else None),
        "path": seen_of(site, known, offered, measured, retry=retry),
        "stored": received.stored if received else 0,
        "last_receipt": received.last_receipt_at if received else None,
        "feeds": [_progress(one) for one in progress],
    }


def _progress(one: SiteProgress) -> dict[str, Any]:
    """How far a site is with a feed. What there is nothing to say of is left out: there are thousands of these."""
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
    """The window in which somebody works on the whole site, if there is one now."""
    for one in silences:
        if one.site == site and one.kind is None and one.feed is None and one.holds(now):
            return {"number": one.number, "until": one.until, "reason": one.reason, "by": one.by}
    return None


def _ldm_source(source: LdmSource, live: LiveState) -> dict[str, Any]:
    def state(name: str) -> dict[str, Any]:
        link = live.ldm_sources.get((source.name, name))
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


def _behind_s(*, progress_known: bool, since: datetime | None, now: datetime) -> float | None:
    if since is None:
        return 0.0 if progress_known else None
    return max((now - since).total_seconds(), 0.0)


def _peak_bps(rates: list[float], *, seconds: int) -> float:
    windows = [rates[start : start + seconds] for start in range(max(len(rates) - seconds, 0) + 1)]
    return max((sum(window) / len(window) for window in windows if window), default=0.0)


def _ms(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1000


_SHOWN_BY_ALARMS_ALONE = frozenset(
    {
        AlarmKind.OBJECTIVE,
        AlarmKind.SILENCE,
        AlarmKind.STALLED,
        AlarmKind.HEARTBEAT,
        AlarmKind.VIOLATION,
        AlarmKind.CLOCK,
        AlarmKind.CREDENTIAL,
        AlarmKind.HUB_DISK,
        AlarmKind.PREDICTION,
    }
)
"""Other kinds are looked at afresh above, so that the page shows them without waiting for the watch."""
_TROUBLED = (CircuitState.DEGRADED, CircuitState.DOWN, CircuitState.FAILED)
CIRCUITS_AHEAD = 20
LATENCY_MINUTES = 60
FAULT_SHOWN = timedelta(minutes=10)
_NODE_STEP = "it is restarted by itself; if it stays away, read the hub's log"
_NO_LATENCY = {"distribution_ms": figures(()), "end_to_end_ms": figures(()), "history": list[Any]()}
