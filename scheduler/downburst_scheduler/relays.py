"""The scheduler's facts about relays: which of them work, which sites they carry, and both segments of those ways.

The kernel's figures of a site that is on a relay end at the relay. So what they say about the direct way is kept from
the time before, with its age, and what they say now is about the segment between hub and relay.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from downburst.domain.events import SessionChanged, TrafficSeen
from downburst.domain.path_facts import KnownPath, PathWatch
from downburst.domain.relays import Core, FanOut, RelayReport, SiteWay, Tunnel
from downburst.domain.relays import Segment as Reported
from downburst.domain.sites import Site
from downburst.domain.tcp.rates import CongestionControl
from downburst.forecasts.path_rates import PathRates
from downburst_scheduler.models.offers import RelayOffer
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.ways import Connections, DirectWay, RelayWay, Segment, beyond, segment_bps
from downburst_scheduler.paths import TELLING_CHANGE, VAGUE, congestion_of


@dataclass(frozen=True, slots=True)
class _Rate:
    rate_bps: float
    at_s: float


class RelayWatch:
    """Follows reports of relays and sessions; bounded by the numbers of relays and sites. Times are monotonic."""

    def __init__(self) -> None:
        self._relays: frozenset[str] = frozenset()
        self._reported_s: dict[str, float] = {}
        """By relay with a session, the time of its newest sign of life."""
        self._carried: dict[str, dict[str, Tunnel]] = {}
        """By relay and site, the open tunnel that brought most."""
        self._ways: Mapping[str, SiteWay] = {}
        """By site, the way that it was told to take."""
        self._rode: dict[str, str] = {}
        """By site, the relay before the circuit that carries its way, or did at the relay's last report."""
        self._edges: dict[tuple[str, str, str], Segment] = {}
        """By relay, site and the next relay of the chain, if any, the last telling measurement after the relay.

        Without a name the site is any: a relay before another one carries sessions that the hub can't tell apart.
        """
        self._settles_s: dict[str, float] = {}
        """By site, the time from which the way of its session is known."""
        self._direct, self._over = PathWatch(), PathWatch()
        """Facts of the hub's kernel about the direct ways, and about the segments before a relay."""
        self._direct_s: dict[str, float] = {}
        self._rates = PathRates()
        self._direct_rates: dict[str, _Rate] = {}
        self._core_bps: dict[str, float] = {}
        self._cores: dict[str, Segment] = {}
        self._both: dict[str, tuple[PathFacts, PathFacts] | None] = {}
        """By relay and by site, results since the last news: each feed asks for them."""

    def keep(self, relays: Iterable[str], sites: Iterable[str], ways: Mapping[str, SiteWay]) -> None:
        """Drops every relay and site except these; `ways` are those that sites were told to take."""
        self._forget_results()
        self._relays, kept, self._ways = frozenset(relays), set(sites), ways
        self._rode |= {site: way.over.relay for site, way in ways.items() if way.over is not None}
        self._rode = {site: relay for site, relay in self._rode.items() if site in kept and relay in self._relays}
        self._reported_s = {name: at_s for name, at_s in self._reported_s.items() if name in self._relays}
        self._carried = {name: by_site for name, by_site in self._carried.items() if name in self._relays}
        any_or_kept = kept | {""}
        self._edges = {
            key: edge for key, edge in self._edges.items() if key[0] in self._relays and key[1] in any_or_kept
        }
        self._core_bps = {name: rate for name, rate in self._core_bps.items() if name in self._relays}
        self._settles_s = {site: at_s for site, at_s in self._settles_s.items() if site in kept}
        self._direct_s = {site: at_s for site, at_s in self._direct_s.items() if site in kept}
        self._direct_rates = {site: rate for site, rate in self._direct_rates.items() if site in kept}
        self._direct.keep(kept)
        self._over.keep(kept)
        self._rates.keep(kept)

    def reported(self, report: RelayReport, now_s: float) -> set[str]:
        """Records a relay's sign of life, the sites that it carries, and measurements; returns sites that moved."""
        if report.relay not in self._relays:
            return set()
        self._forget_results()
        before = self._carried.get(report.relay, {})
        carried: dict[str, Tunnel] = {}
        for tunnel in report.tunnels:
            if tunnel.site is None:
                found = _telling(tunnel)
                if found is not None:
                    self._edges[report.relay, "", ""] = found
                continue
            self._measured(report.relay, tunnel.site, tunnel)
            known = carried.get(tunnel.site)
            if not tunnel.ended and (known is None or known.bytes_from_hub < tunnel.bytes_from_hub):
                carried[tunnel.site] = tunnel
        self._reported_s[report.relay], self._carried[report.relay] = now_s, carried
        for site in [site for site, relay in self._rode.items() if relay == report.relay and not self._rides(site)]:
            del self._rode[site]
        moved = set(before) ^ set(carried)
        for site in moved:
            # Rates of one way say nothing about the other.
            self._rates.forget(site)
        return moved

    def session(self, event: SessionChanged, now_s: float) -> None:
        """A new session's way is known after two reports of relays; a relay without a session carries nothing."""
        self._forget_results()
        self._settles_s[event.site] = now_s + SETTLES_S
        self._rates.forget(event.site)
        if event.state == "closed":
            self._reported_s.pop(event.site, None)
            self._carried.pop(event.site, None)

    def traffic(self, event: TrafficSeen, now_s: float) -> None:
        """Records a node's reports of sessions, each for the way that its site is on."""
        self._forget_results()
        self._rates.traffic(event)
        for session in event.sessions:
            site = session.site
            if site in self._relays:
                self._over.sessions([session])
            elif now_s < self._settles_s.setdefault(site, now_s + SETTLES_S):
                continue
            elif self.carrier(site, now_s) is not None:
                self._over.sessions([session])
            else:
                self._direct.sessions([session])
                self._direct_s[site] = now_s
        for site in event.gone:
            self._settles_s.pop(site, None)

    def is_up(self, relay: str, now_s: float) -> bool:
        """True while the relay reports: it does so every ten seconds."""
        reported_s = self._reported_s.get(relay)
        return reported_s is not None and now_s - reported_s <= SIGN_OF_LIFE_S

    def carrier(self, site: str, now_s: float) -> str | None:
        """The relay, next to the hub, that carries the site's session; None: it is direct, or not known."""
        if not self._carried:
            return None
        carriers = (name for name, by_site in self._carried.items() if site in by_site and self.is_up(name, now_s))
        return min(carriers, default=None)

    def measured_bps(self, site: Site, now: datetime) -> float | None:
        """The rate of the site's session on its present way, by the path's forecast; None: vague, or not known."""
        found = self._rates.of(site, now)
        return None if found is None or found.rate.error_share >= VAGUE else found.rate.rate_bps

    def direct(self, site: Site, now: datetime, now_s: float, *, most: int) -> DirectWay:
        """The facts about the site's direct way; those last measured while it is on a relay."""
        known = self._direct.of(site.name)
        at_s = self._direct_s.get(site.name, now_s)
        if self.carrier(site.name, now_s) is None and now_s >= self._settles_s.get(site.name, now_s):
            rate_bps = self.measured_bps(site, now)
            if rate_bps is not None:
                self._direct_rates[site.name] = _Rate(rate_bps, now_s)
        measured = self._direct_rates.get(site.name)
        profile = known.profile.knobs.connections if known.profile else None
        fixed = site.data_connections if site.data_connections is not None else profile
        return DirectWay(
            _segment(known, whole=True),
            Connections(fixed, most),
            line_bps=site.pace_bps(now.hour),
            measured_bps=measured.rate_bps if measured and now_s - measured.at_s <= RATE_COUNTS_S else None,
            age_s=max(now_s - at_s, 0.0),
        )

    def way(self, chain: tuple[str, ...], site: str, direct: DirectWay) -> RelayWay:
        """A chain's segments, hub first: measured where a tunnel was used, else estimated by `beyond`."""
        cores = [self.core(relay) for relay in reversed(chain)]
        found = [cores[0]]
        below = (*reversed(chain[:-1]), "")
        for before, after, relay, then in zip(
            cores, [*cores[1:], direct.segment], reversed(chain), below, strict=True
        ):
            used = self._edges.get((relay, site, then))
            guessed = beyond(after, before, self._congestion(relay))
            if guessed.round_trip_s is None and not then:
                guessed = self._edges.get((relay, "", ""), guessed)
            found.append(used or guessed)
        return RelayWay(chain, tuple(found), estimated=(chain[0], site, "") not in self._edges)

    def beside_bps(self, way: SiteWay, core: Core) -> float | None:
        """The rate of the slowest segment of a way beside its core, for one connection; None: one is not known."""
        direct = DirectWay(_segment(self._direct.of(way.site), whole=True))
        segments = self.way(way.chain, way.site, direct).segments
        place = len(way.chain) - 1 - way.cores.index(core)
        rates = [segment_bps(one) for number, one in enumerate(segments) if number != place]
        told = [rate for rate in rates if rate is not None]
        return min(told) if len(told) == len(rates) else None

    def core(self, relay: str) -> Segment:
        """The segment between the hub and a relay: by its own session, or the busiest session that it carries."""
        if relay not in self._cores:
            self._cores[relay] = self._core(relay)
        return self._cores[relay]

    def _core(self, relay: str) -> Segment:
        own = self._over.of(relay)
        carried = [self._over.of(site) for site in self._carried.get(relay, ())]
        telling = [known for known in (own, *carried) if known.loss is not None]
        known = max(telling, key=lambda one: one.sent_segments, default=own)
        found = _segment(known, whole=known is own)
        return replace(found, loss=known.sure_loss, assumed_clean=known.loss is None)

    def offer(self, relay: str, fan_out: FanOut) -> RelayOffer:
        """What a relay may carry; a limit stays until another one differs by a quarter, so that plans do not flap."""
        found, standing = segment_bps(self.core(relay)), self._core_bps.get(relay)
        if found is None or found == float("inf"):
            self._core_bps.pop(relay, None)
            return RelayOffer(relay, fan_out)
        if standing is None or abs(found - standing) > TELLING_CHANGE * standing:
            self._core_bps[relay] = standing = found
        return RelayOffer(relay, fan_out, standing)

    def edge(self, site: str, now_s: float) -> tuple[PathFacts, PathFacts] | None:
        """The first segment of a site that is on a relay and the way after it, for the models of transports.

        None: it is direct. Segments between relays have the figures of the routed way, also while a circuit carries
        one of them.
        """
        if not self._carried:
            return None
        if site not in self._both:
            self._both[site] = self._segments(site, now_s)
        return self._both[site]

    def _segments(self, site: str, now_s: float) -> tuple[PathFacts, PathFacts] | None:
        relay = self.carrier(site, now_s)
        if relay is None:
            return None
        told = self._ways.get(site)
        chain = told.chain if told is not None and told.chain[-1:] == (relay,) else (relay,)
        way = self.way(chain, site, DirectWay(_segment(self._direct.of(site), whole=True)))
        core, *beyond = (
            PathFacts(one.round_trip_s or 0.0, one.loss or 0.0, congestion=one.congestion) for one in way.segments
        )
        edge = beyond[-1]
        for one in reversed(beyond[:-1]):
            edge = replace(one, edge=edge)
        return core, edge

    def _forget_results(self) -> None:
        self._cores.clear()
        self._both.clear()

    def _measured(self, relay: str, site: str, tunnel: Tunnel) -> None:
        found = _telling(tunnel)
        # A circuit says nothing of the routed segment.
        if found is None or self._rode.get(site) == relay:
            return
        told = self._ways.get(site)
        chain = told.chain if told is not None else ()
        place = chain.index(relay) if relay in chain else 0
        then = chain[place - 1] if place else ""
        self._edges[relay, site, then] = found

    def _rides(self, site: str) -> bool:
        way = self._ways.get(site)
        return way is not None and way.over is not None

    def _congestion(self, relay: str) -> CongestionControl:
        """The congestion control of a relay towards its sites, by any of its tunnels; the kernel's default else."""
        names = (tunnel.near.congestion for tunnel in self._carried.get(relay, {}).values())
        return congestion_of(next(names, ""))


def _segment(known: KnownPath, *, whole: bool) -> Segment:
    """The clock's round trip is that of the whole way, the kernel's that of its own connection."""
    kernel_us = known.tcp.least_round_trip_us if known.tcp else None
    round_trip_us = known.least_round_trip_us if whole else kernel_us
    return Segment(
        congestion_of(known.tcp.congestion if known.tcp else ""),
        round_trip_us / 1e6 if round_trip_us is not None else None,
        None if known.loss is None else known.sure_loss,
    )


def _telling(tunnel: Tunnel) -> Segment | None:
    """The segment after a relay, if the tunnel carried enough to measure it."""
    near = tunnel.near
    if tunnel.bytes_from_hub < TELLING_BYTES or near.round_trip_us is None or near.loss_ppm is None:
        return None
    return Segment(congestion_of(near.congestion), near.round_trip_us / 1e6, _share(near))


def _share(segment: Reported) -> float:
    return min(max(segment.loss_ppm or 0, 0) / 1e6, 1.0)


SETTLES_S = 25.0
"""Two reports of a relay, and a little more."""
SIGN_OF_LIFE_S = 30.0
"""Three reports."""
TELLING_BYTES = 1_448_000
"""A thousand segments."""
RATE_COUNTS_S = 86_400.0
"""After a day a measured rate of the direct way is of no use."""
