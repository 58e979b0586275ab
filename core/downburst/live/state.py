"""The present state, in memory and bounded: sessions, clocks, progress, recent rates."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from downburst.domain.backlog import Backlog, CatchUpChanged, FeedBacklog
from downburst.domain.bridges import BridgesNow
from downburst.domain.events import (
    BacklogSeen,
    Event,
    FeedTraffic,
    LdmPeerChanged,
    LdmSourceChanged,
    LegChanged,
    NodeChanged,
    RelaySeen,
    SessionChanged,
    SessionTraffic,
    SiteProgress,
    Streams,
    TrafficSeen,
    UpstreamChanged,
)
from downburst.domain.feeds import TrafficMinute
from downburst.domain.latency import SiteClock
from downburst.foundation.clock import from_us
from downburst.foundation.errors import BadInput
from downburst.live.catch_ups import CatchUps
from downburst.live.paths import LivePaths
from downburst.live.repairs import LegRepairs
from downburst.recordings.recording import Report, report_of


@dataclass(frozen=True, slots=True)
class SiteSession:
    """A site's control connection as last reported."""

    site: str
    connected: bool
    since: datetime
    peer: str = ""
    reason: str | None = None
    software: str | None = None
    stand_by: bool = False
    """Another hub serves the site."""
    renews: bool = False
    """Its receiver can replace its credential by itself."""
    clock_offset_us: int | None = None
    clock_bound_us: int | None = None
    round_trip_us: int | None = None
    clock: SiteClock | None = None
    """The site's own word on its clock."""
    streams: Streams | None = None
    progress: Mapping[str, SiteProgress] = field(default_factory=dict)
    behind_since: datetime | None = None
    """The time since which the site lacks products in any of its feeds."""


@dataclass(frozen=True, slots=True)
class UpstreamLink:
    """The last reported state of the connection to a hub of which this hub is a site."""

    connected: bool
    since: datetime
    hub: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LdmLink:
    """The state of an LDM: a source of products, or that of a site."""

    connections: int
    since: datetime
    mode: str = ""
    reason: str | None = None


@dataclass(slots=True)
class CircuitLoad:
    """The traffic through an end of a circuit, in frames: since the hub started, and in the last second."""

    out_bytes: int = 0
    in_bytes: int = 0
    out_bps: float = 0.0
    in_bps: float = 0.0
    sender: str = ""
    """The sender that counted it; empty: the hub's own node."""


class FeedArrivals:
    """Arrivals of one feed: totals, and the last seconds one by one."""

    def __init__(self) -> None:
        self.products = self.products_here = 0
        self.bytes = self.bytes_here = 0
        """`_here`: since the hub started; the others include the ledger's totals."""
        self.head = 0
        self._seconds: deque[tuple[int, float]] = deque(maxlen=HISTORY_SECONDS)

    def add(self, traffic: FeedTraffic, seconds: float) -> None:
        """Counts one traffic event."""
        self.products += traffic.products
        self.bytes += traffic.bytes
        self.products_here += traffic.products
        self.bytes_here += traffic.bytes
        self.head = max(self.head, traffic.head)
        self._seconds.append((traffic.bytes, seconds))

    @property
    def rates_bps(self) -> list[float]:
        """Product bits per second of each of the last seconds, oldest first."""
        return [count * 8 / seconds for count, seconds in self._seconds]

    def mean_bps(self, last: int = 120) -> float:
        """Mean product bits per second over the last seconds."""
        return _mean_bps(list(self._seconds)[-last:])


@dataclass(frozen=True, slots=True)
class RetentionWarning:
    """A feed whose log holds less than the longest outage that sites may have."""

    since: datetime
    problem: str
    step: str


@dataclass(frozen=True, slots=True)
class Damage:
    """The last damage found by reading a feed's log."""

    at: datetime
    sentence: str


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """The hub's node ended by itself."""

    at: datetime
    reason: str


@dataclass(slots=True)
class NodeLife:
    """The life of the hub's node since the hub started."""

    running: bool = False
    restarts: int = 0
    ends: deque[NodeEnd] = field(default_factory=lambda: deque(maxlen=NODE_ENDS_KEPT))
    """The last ones, oldest first."""
    back_at: datetime | None = None
    """The last start."""


@dataclass(slots=True)
class LdmState:
    """LDMs around the hub."""

    sources: dict[tuple[str, str], LdmLink] = field(default_factory=dict)
    """By source and upstream."""
    sites: dict[str, LdmLink] = field(default_factory=dict)
    """By site, those whose LDM requests products from this hub."""
    reports: dict[tuple[str, str, str], Report] = field(default_factory=dict)
    """By host, feed type and path: the last rtstats line, of hosts that are no sites of this hub."""


class SentRates:
    """Bytes and seconds of the last reports of traffic."""

    def __init__(self) -> None:
        self.egress: deque[tuple[int, float]] = deque(maxlen=RATE_SECONDS)
        self.unicast_equivalent: deque[tuple[int, float]] = deque(maxlen=RATE_SECONDS)
        """Of the same products to each site alone."""


class LiveState:
    """Follows the events of a hub; read by the api, updated through `apply`."""

    def __init__(self) -> None:
        self.sessions: dict[str, SiteSession] = {}
        self._at_senders: dict[str, set[str]] = {}
        """By site, the senders that it is connected to."""
        self._backlogs: dict[str, dict[str, tuple[FeedBacklog, ...]]] = {}
        """By site, the last count of each node that serves it; the hub's own node has no name."""
        self.upstreams: dict[str, UpstreamLink] = {}
        self.ldm = LdmState()
        self.arrivals: dict[str, FeedArrivals] = {}
        self.node = NodeLife()
        self.retention_warnings: Mapping[str, RetentionWarning] = {}
        self.damages: dict[str, Damage] = {}
        """By feed."""
        self.repairs = LegRepairs()
        self.bridges = BridgesNow()
        self.control_bytes = 0
        self.paths = LivePaths()
        self.circuits: dict[tuple[int, str | None], CircuitLoad] = {}
        """By circuit and site; None: all traffic of the hub's end."""
        self._sent = SentRates()

    def remember(self, totals: Mapping[str, TrafficMinute]) -> None:
        """Initializes the totals of feeds from an earlier run of the hub."""
        for feed, total in totals.items():
            arrivals = self.arrivals.setdefault(feed, FeedArrivals())
            arrivals.products, arrivals.bytes = total.products, total.bytes

    def apply(self, event: Event) -> None:
        """Processes one event; ignores those without news about the present."""
        match event:
            case SessionChanged():
                self._session(event)
            case UpstreamChanged():
                self._upstream(event)
            case LdmSourceChanged():
                self._ldm_source(event)
            case LdmPeerChanged() if event.site is not None:
                self._ldm_site(event, event.site)
            case TrafficSeen():
                self._traffic(event)
                self.paths.traffic(event)
            case BacklogSeen():
                self._backlog(event)
            case RelaySeen():
                self.paths.relay(event)
            case LegChanged() | CatchUpChanged():
                self._leg(event)
            case NodeChanged():
                self._node(event)
            case _:
                pass

    def hear_sender(self, event: Event) -> None:
        """Processes another node's events about its sites; its other events are ignored."""
        if isinstance(event, SessionChanged) and event.sender and event.state != "refused" and not event.stand_by:
            at = self._at_senders.setdefault(event.site, set())
            if event.state == "connected":
                at.add(event.sender)
            else:
                at.discard(event.sender)
            if event.state == "connected" or not at:
                self._session(event)
        elif isinstance(event, TrafficSeen) and event.sender:
            self._circuit_use(event)
            for session in event.sessions:
                self._clock_and_progress(session, from_us(event.to_us), adds=True)
        elif isinstance(event, BacklogSeen) and event.sender:
            self._backlog(event)
        elif isinstance(event, RelaySeen):
            self.paths.relay(event)

    def only_senders(self, alive: Collection[str], at: datetime) -> None:
        """Ends sessions with senders that are no longer alive, and drops their counts."""
        for load in self.circuits.values():
            if load.sender not in ("", *alive):
                load.out_bps = load.in_bps = 0.0
        for counted in self._backlogs.values():
            for sender in counted.keys() - {"", *alive}:
                del counted[sender]
        for site, senders in self._at_senders.items():
            if not senders or senders & set(alive):
                senders &= set(alive)
                continue
            senders.clear()
            session = self.sessions.get(site)
            if session is not None and session.connected:
                self.sessions[site] = replace(session, connected=False, since=at, reason="its sender is unavailable")

    def session(self, site: str) -> SiteSession | None:
        """The site's session, if it was ever connected since the hub started."""
        return self.sessions.get(site)

    def nodes_of(self, site: str) -> tuple[str, ...]:
        """The nodes with a session of the site: senders by name, empty for the hub's own; none while it is away."""
        session = self.sessions.get(site)
        if session is None or not session.connected:
            return ()
        return tuple(sorted(self._at_senders.get(site) or {""}))

    def backlog(self, site: str) -> Backlog | None:
        """The site's backlog over all its feeds; None if it is unknown."""
        return Backlog.of(self.backlog_by_feed(site).values())

    def backlogs(self) -> dict[str, Backlog]:
        """The known backlogs of all sites."""
        found = ((site, self.backlog(site)) for site in self._backlogs)
        return {site: backlog for site, backlog in found if backlog is not None}

    def backlog_by_feed(self, site: str) -> dict[str, FeedBacklog]:
        """The site's backlog by feed."""
        return {one.feed: one for counted in self._backlogs.get(site, {}).values() for one in counted}

    def forget_site(self, site: str) -> None:
        """Drops a removed site."""
        self.sessions.pop(site, None)
        self.ldm.sites.pop(site, None)
        self._backlogs.pop(site, None)
        self.paths.forget(site)

    def forget_feed(self, feed: str) -> None:
        """Drops a removed feed."""
        self.arrivals.pop(feed, None)
        self.catch_ups.forget(feed)

    def forget_circuit(self, number: int) -> None:
        """Drops a circuit that has ended."""
        self.circuits = {key: load for key, load in self.circuits.items() if key[0] != number}

    @property
    def catch_ups(self) -> CatchUps:
        """The streams by which sites caught up together."""
        return self.paths.catch_ups

    @property
    def relays(self) -> Mapping[str, RelaySeen]:
        """The newest report of each relay, by its name."""
        return self.paths.relays

    @property
    def connected(self) -> int:
        """The number of connected sites; relays that reported since the start are none."""
        return sum(session.connected for site, session in self.sessions.items() if site not in self.relays)

    @property
    def in_bps(self) -> float:
        """Incoming product bits per second, over the last seconds."""
        return sum(arrivals.mean_bps(RATE_SECONDS) for arrivals in self.arrivals.values())

    @property
    def out_bps(self) -> float:
        """Outgoing payload bits per second of all legs, over the last seconds."""
        return _mean_bps(self._sent.egress)

    @property
    def unicast_equivalent_bps(self) -> float:
        """Bits per second that separate copies for each site would take, over the last seconds."""
        return _mean_bps(self._sent.unicast_equivalent)

    def _session(self, event: SessionChanged) -> None:
        if not event.site:
            return
        before = self.sessions.get(event.site)
        if event.state == "closed" and not event.sender and self._at_senders.get(event.site):
            # It moved from the hub's own node to a sender.
            return
        if event.state == "refused":
            # A stranger with a bad credential must not make a connected site appear offline.
            if before is None or not before.connected:
                refused = SiteSession(
                    site=event.site, connected=False, since=event.at, peer=event.peer, reason=event.reason
                )
                self.sessions[event.site] = refused
            return
        self.sessions[event.site] = SiteSession(
            site=event.site,
            connected=event.state == "connected",
            since=event.at,
            peer=event.peer,
            reason=event.reason,
            software=event.software or (before.software if before else None),
            stand_by=event.stand_by,
            renews=event.renews,
            progress=before.progress if before else {},
            behind_since=before.behind_since if before else None,
        )

    def _upstream(self, event: UpstreamChanged) -> None:
        before = self.upstreams.get(event.upstream)
        connected = event.state == "connected"
        # Each failed attempt is reported; the upstream is away since the first.
        since = before.since if before and not before.connected and not connected else event.at
        name = event.hub or (before.hub if before else None)
        self.upstreams[event.upstream] = UpstreamLink(connected, since, name, event.reason)

    def reported(self, line: str) -> None:
        """Takes an rtstats line. Malformed lines are ignored: any permitted peer can send anything."""
        try:
            report = report_of(line)
        except BadInput:
            return
        self.ldm.reports.pop((report.host, report.feed, report.path), None)
        self.ldm.reports[report.host, report.feed, report.path] = report
        while len(self.ldm.reports) > MOST_REPORTS:
            del self.ldm.reports[next(iter(self.ldm.reports))]

    def _leg(self, event: LegChanged | CatchUpChanged) -> None:
        if isinstance(event, LegChanged):
            self.paths.leg(event)
        else:
            self.catch_ups.apply(event)

    def _ldm_source(self, event: LdmSourceChanged) -> None:
        before = self.ldm.sources.get((event.source, event.upstream))
        connections = int(event.state == "connected")
        since = before.since if before and before.connections == connections == 0 else event.at
        self.ldm.sources[event.source, event.upstream] = LdmLink(connections, since, event.mode, event.reason)

    def _ldm_site(self, event: LdmPeerChanged, site: str) -> None:
        before = self.ldm.sites.get(site)
        connections = before.connections if before else 0
        if event.state == "connected":
            connections += 1
        elif event.state == "closed":
            connections = max(0, connections - 1)
        since = before.since if before and bool(before.connections) == bool(connections) else event.at
        self.ldm.sites[site] = LdmLink(connections, since, reason=event.reason)

    def _traffic(self, event: TrafficSeen) -> None:
        for feed in event.feeds:
            self.arrivals.setdefault(feed.feed, FeedArrivals()).add(feed, event.seconds)
        self.repairs.seen(event.legs)
        self.control_bytes += event.control_bytes
        egress = sum(leg.egress_bytes for leg in event.legs) + event.control_bytes
        self._sent.egress.append((egress, event.seconds))
        equivalent = sum(leg.unicast_equivalent_bytes for leg in event.legs)
        self._sent.unicast_equivalent.append((equivalent, event.seconds))
        self._circuit_use(event)
        for session in event.sessions:
            self._clock_and_progress(session, from_us(event.to_us))

    def _circuit_use(self, event: TrafficSeen) -> None:
        for use in event.circuits:
            load = self.circuits.setdefault((use.circuit, use.site), CircuitLoad())
            load.sender = event.sender
            load.out_bytes += use.out_bytes
            load.in_bytes += use.in_bytes
            load.out_bps, load.in_bps = (count * 8 / event.seconds for count in (use.out_bytes, use.in_bytes))

    def _clock_and_progress(self, seen: SessionTraffic, at: datetime, *, adds: bool = False) -> None:
        before = self.sessions.get(seen.site) or SiteSession(seen.site, True, at)  # noqa: FBT003
        kept = before.progress if adds else {}
        behind = any(progress.pending for progress in seen.feeds)
        self.sessions[seen.site] = replace(
            before,
            clock_offset_us=seen.clock_offset_us,
            clock_bound_us=seen.clock_bound_us,
            round_trip_us=seen.round_trip_us,
            clock=seen.clock or before.clock,
            streams=seen.streams,
            progress={**kept, **{progress.feed: progress for progress in seen.feeds}},
            behind_since=(before.behind_since or at) if behind else None,
        )

    def _backlog(self, event: BacklogSeen) -> None:
        for site in event.sites:
            self._backlogs.setdefault(site.site, {})[event.sender] = site.feeds

    def _node(self, event: NodeChanged) -> None:
        self.node.running = event.running
        self.node.restarts = event.restarts
        if event.running:
            self.node.back_at = event.at
            return
        self.node.ends.append(NodeEnd(event.at, event.reason or "the node ended"))
        for counted in self._backlogs.values():
            counted.pop("", None)
        for site, session in self.sessions.items():
            if session.connected:
                away = replace(session, connected=False, since=event.at, reason="the hub's node is not running")
                self.sessions[site] = away
        for name, link in self.upstreams.items():
            if link.connected:
                reason = "this hub's node is not running"
                away_link = UpstreamLink(connected=False, since=event.at, hub=link.hub, reason=reason)
                self.upstreams[name] = away_link
        for links in (self.ldm.sources, self.ldm.sites):
            _all_away(links, event.at)


def _all_away(links: dict[Any, LdmLink], at: datetime) -> None:
    for key, link in links.items():
        if link.connections:
            links[key] = LdmLink(0, at, link.mode, "this hub's node is not running")


def _mean_bps(counts: Iterable[tuple[int, float]]) -> float:
    kept = list(counts)
    seconds = sum(length for _, length in kept)
    return sum(count for count, _ in kept) * 8 / seconds if seconds else 0.0


MOST_REPORTS = 10_000
"""Hosts times feed types times paths; the IDD has some thousands."""
HISTORY_SECONDS = 120
RATE_SECONDS = 5
NODE_ENDS_KEPT = 100
