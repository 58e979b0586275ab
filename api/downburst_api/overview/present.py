"""Present faults of feeds, sites, circuits and upstreams, checked afresh, without delay by the alarms' watch."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from downburst.domain.alarms import AlarmKind, Severity
from downburst.domain.circuits import Circuit, CircuitState, Measured
from downburst.domain.faults import Fault
from downburst.domain.sites import Site
from downburst.domain.upstreams import LdmSource, Upstream
from downburst.live.site_states import SiteStanding, SiteState
from downburst.live.state import LiveState, SiteSession
from downburst_api.overview.facts import Facts
from downburst_api.overview.wrong import Wrong


def wrong_now(live: LiveState, facts: Facts, now: datetime) -> Iterable[Wrong]:
    """All faults of feeds, sites, circuits and upstreams, unordered."""
    for feed, warning in live.retention_warnings.items():
        fault = Fault(warning.since, warning.problem, feed=feed, next_step=warning.step)
        yield Wrong.of(AlarmKind.RETENTION, fault)
    for alarm in facts.alarms:
        if alarm.kind in _SHOWN_BY_ALARMS_ALONE:
            fault = Fault(alarm.since, alarm.sentence, alarm.feed, alarm.site, alarm.next_step)
            yield Wrong.of(alarm.kind, fault, severity=alarm.severity, subject=alarm.subject)
    wanting = {site for _, site in facts.wanted}
    for site in facts.sites:
        session = live.session(site.name)
        if site.ldm_host is not None:
            yield from _ldm_away(site, live, now) if site.active and site.name in wanting else ()
        elif site.active and site.name in wanting and not (session and session.connected):
            yield _away(site, facts.standings.of(site, live), live, now)
        if session and session.connected:
            yield from (Wrong.of(AlarmKind.SITE_DISK, one) for one in _troubles(site, session, now))
    yield from _circuits_in_trouble(facts.circuits, facts.measured, now)
    yield from (Wrong(one, Severity.CRITICAL) for one in _upstreams_away(live, facts.upstreams, now))
    yield from _ldm_sources_away(live, facts.ldm_sources, now)


def _troubles(site: Site, session: SiteSession, now: datetime) -> Iterable[Fault]:
    """Storage faults: a connected site takes nothing while its disk is full, read-only, or failing."""
    step = (
        f"free or repair the disk at {site.organisation or site.name}; the feed then continues by itself, "
        "and no product is lost while this hub still keeps it"
    )
    for progress in session.progress.values():
        if progress.trouble:
            sentence = f"{site.name} can't store {progress.feed}: {progress.trouble}"
            yield Fault(session.behind_since or now, sentence, progress.feed, site.name, step)


def _away(site: Site, standing: SiteStanding, live: LiveState, now: datetime) -> Wrong:
    """An absent site: a warning once it lasts longer than a restart, information before or if it never connected."""
    backlog = live.backlog(site.name)
    lacking = f"; it {backlog.words(now)}" if backlog is not None and backlog.lacks else ""
    step = f"check the receiver's log at {site.organisation or site.name}; it catches up by itself when it reconnects"
    if standing.state is SiteState.NEVER_ENROLLED:
        step = f"enrol its receiver: downburst sites token {site.name}"
    elif standing.state is SiteState.NEVER_CONNECTED:
        step = f"start downburst-node receive at {site.organisation or site.name}"
    since = standing.since or site.created_at or now
    fault = Fault(since, f"{site.name}: {standing.words}{lacking}", site=site.name, next_step=step)
    lasts = standing.state is SiteState.AWAY and now - since >= RESTART
    return Wrong.of(AlarmKind.SITE_DOWN, fault, severity=Severity.WARNING if lasts else Severity.INFORMATION)


def _circuits_in_trouble(circuits: list[Circuit], measured: list[Measured], now: datetime) -> Iterable[Wrong]:
    """Circuits in trouble: feeds leave them for the routed path, which nothing else here shows."""
    for circuit in circuits:
        if circuit.shown_state in _TROUBLED:
            rows = [row for row in measured if row.circuit == circuit.number and not row.enough]
            remedy = next((row.remedy for row in rows if row.remedy), f"downburst circuits show {circuit.number}")
            sentence = f"circuit {circuit.number} is {circuit.shown_state}: {circuit.shown_reason}"
            fault = Fault(circuit.since or now, sentence, site=circuit.sites[0], next_step=remedy)
            yield Wrong.of(AlarmKind.CIRCUIT, fault, subject=str(circuit.number))


def _upstreams_away(live: LiveState, upstreams: list[Upstream], now: datetime) -> Iterable[Fault]:
    """Absent upstreams: this hub's sites lack their feeds, and nothing else here shows it."""
    for upstream in upstreams:
        link = live.upstreams.get(upstream.name)
        if link is None or not link.connected:
            reason = f": {link.reason}" if link and link.reason else ""
            sentence = f"no connection to the upstream {upstream.name} at {upstream.address}{reason}"
            step = (
                f"ask the operator of {upstream.name} whether that hub runs and still has this one as a "
                "site; this hub reconnects by itself and then gets the missed products"
            )
            yield Fault(link.since if link else upstream.created_at or now, sentence, next_step=step)


def _ldm_away(site: Site, live: LiveState, now: datetime) -> Iterable[Wrong]:
    link = live.ldm.sites.get(site.name)
    if link is None or not link.connections:
        reason = f": {link.reason}" if link and link.reason else ""
        step = (
            f"ask its administrator whether LDM runs there with a REQUEST to this hub; its host must match "
            f"{site.ldm_host} and the setting ldm.listen must open a port: downburst ldm peers"
        )
        sentence = f"no LDM of site {site.name} is connected{reason}"
        since = link.since if link else site.created_at or now
        yield Wrong(Fault(since, sentence, site=site.name, next_step=step), Severity.CRITICAL)


def _ldm_sources_away(live: LiveState, sources: list[LdmSource], now: datetime) -> Iterable[Wrong]:
    """Each absent upstream is a fault; a source without any left is a worse one."""
    for source in sources:
        links = {name: live.ldm.sources.get((source.name, name)) for name in source.upstreams}
        left = sum(1 for link in links.values() if link and link.connections)
        for name, link in links.items():
            if link is None or not link.connections:
                reason = f": {link.reason}" if link and link.reason else ""
                rest = f"{left} other upstreams work" if left else f"this source brings no {source.feeds}"
                sentence = f"the LDM at {name} sends nothing to source {source.name}{reason}; {rest}"
                step = "this hub retries by itself; check that LDM runs there, with an ALLOW line for this host"
                fault = Fault(link.since if link else source.created_at or now, sentence, next_step=step)
                yield Wrong(fault, Severity.WARNING if left else Severity.CRITICAL)


_SHOWN_BY_ALARMS_ALONE = frozenset(
    {
        AlarmKind.OBJECTIVE,
        AlarmKind.SILENCE,
        AlarmKind.STALLED,
        AlarmKind.GROUP_LOSS,
        AlarmKind.LINKED_FILES,
        AlarmKind.HEARTBEAT,
        AlarmKind.VIOLATION,
        AlarmKind.PEER_VIOLATION,
        AlarmKind.CLOCK,
        AlarmKind.CREDENTIAL,
        AlarmKind.HUB_DISK,
        AlarmKind.PREDICTION,
    }
)
"""Other kinds are checked afresh above, so that the page shows them without waiting for the watch."""
_TROUBLED = (CircuitState.DEGRADED, CircuitState.DOWN, CircuitState.FAILED)
RESTART = timedelta(seconds=10)
"""Longer than a receiver takes to restart."""
