"""The scheduler's facts about the path to each site: measured round trips, ceilings, groups received, shares."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Literal

from downburst.domain.events import LegChanged, SessionTraffic, SiteProgress, TrafficSeen
from downburst.domain.path_facts import KnownPath, PathWatch
from downburst.domain.receipts import Settled
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.domain.tcp.rates import CongestionControl
from downburst.forecasts.path_rates import PathRates
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.situation import SiteFacts

Carrier = Literal["network", "circuit", "relay"]
"""The bearer of a group: the routed network, a circuit, or the network of a relay."""


class SitePaths:
    """Follows sessions and legs; queried for each site of each feed."""

    def __init__(self, retry: timedelta) -> None:
        self._retry = retry
        self._watch = PathWatch()
        self._rates = PathRates()
        self._limits_bps: dict[str, float] = {}
        """By site, the assumed limit by measured rates."""
        self._facts: dict[str, PathFacts] = {}
        """The watch's facts about each site, computed once for all feeds."""
        self._out_until: dict[tuple[str, Carrier], tuple[datetime, str]] = {}
        self._interfaces: dict[str, str] = {}
        """By site, the interface that joins groups."""
        self._shares = MatchShares()

    def traffic_seen(self, event: TrafficSeen) -> None:
        """Records a node's reports of its sessions, and the rates that they measured."""
        self.sessions_seen(event.sessions)
        self._rates.traffic(event)

    def sessions_seen(self, sessions: Iterable[SessionTraffic]) -> None:
        """Records the reports of connected sites' sessions about their paths."""
        seen = list(sessions)
        self._watch.sessions(seen)
        for session in seen:
            self._facts.pop(session.site, None)

    def leg_changed(self, event: LegChanged, *, on: Carrier = "network") -> None:
        """Joining a group is its probe; a site that never received it, or lost too much, is in none until the retry.

        Results on a circuit or behind a relay say nothing about the network's groups, and vice versa.
        """
        if on == "network":
            self._watch.leg(event)
        if event.state in OUT_OF_GROUPS:
            why = f" ({event.reason})" if event.reason else ""
            out = (event.at + self._retry, OUT_OF_GROUPS[event.state] + why)
            self._out_until[event.site, on] = out

    def may_join(self, site: str) -> None:
        """The rate of the site's line is known: it belongs in a slower group, although one was too fast for it."""
        out = self._out_until.get((site, "network"))
        if out is not None and out[1].startswith(OUT_OF_GROUPS["too-slow"]):
            del self._out_until[site, "network"]

    def arrived(self, feed: str, size_bytes: int) -> None:
        """Counts the arrivals of a feed, against which the sites' shares are measured."""
        self._shares.arrived(feed, size_bytes)

    def settled(self, reports: Iterable[Settled], *, caught_up: frozenset[tuple[str, str]]) -> None:
        """Records the stored products of sites; only of those (site, feed) that have caught up."""
        self._shares.settled(reports, caught_up=caught_up)

    def moved(self, site: str) -> None:
        """Drops the measured rates of a site whose session now takes another way."""
        self._rates.forget(site)
        self._limits_bps.pop(site, None)

    def keep(self, sites: Iterable[str]) -> None:
        """Drops every site except these."""
        kept = set(sites)
        self._watch.keep(kept)
        self._facts = {site: facts for site, facts in self._facts.items() if site in kept}
        self._out_until = {key: out for key, out in self._out_until.items() if key[0] in kept}
        self._interfaces = {site: name for site, name in self._interfaces.items() if site in kept}
        self._shares.keep(kept)
        self._rates.keep(kept)
        self._limits_bps = {site: limit for site, limit in self._limits_bps.items() if site in kept}

    def site(
        self, site: Site, feed: str, wishes: Iterable[Subscription], *, now: datetime, in_group: bool
    ) -> SiteFacts:
        """The facts about a site for a decision on `feed`."""
        path = self._path(site.name)
        self._note_interface(site)
        return SiteFacts(
            name=site.name,
            round_trip_s=path.round_trip_s,
            loss=path.loss,
            congestion=path.congestion,
            connections=path.connections,
            access_bps=site.pace_bps(now.hour),
            forecast_bps=self._forecast_bps(site, now),
            share=1.0 if any(_takes_all(wish) for wish in wishes) else self._shares.share(site.name, feed),
            no_multicast=self._no_multicast(site, now, on="network"),
            no_circuit_group=self._no_multicast(site, now, on="circuit"),
            no_relay_group=self._no_multicast(site, now, on="relay"),
            unheard=not self._watch.hears(site.name),
            keeps_ldm=site.ldm_host is not None,
            tunnel=site.has_tunnel,
            in_group=in_group,
        )

    def _note_interface(self, site: Site) -> None:
        """Another interface, or a tunnel in place of one, is tested without delay."""
        before = self._interfaces.get(site.name, site.multicast_interface)
        self._interfaces[site.name] = site.multicast_interface
        if before != site.multicast_interface:
            self._out_until.pop((site.name, "network"), None)

    def _forecast_bps(self, site: Site, now: datetime) -> float | None:
        """The limit by measured rates: forecast plus error, or none if the error is half the forecast or more.

        It stays until a new one differs by a quarter, as a limit that follows each sample would make plans flap.
        """
        found, standing = self._rates.of(site, now), self._limits_bps.get(site.name)
        if found is None or found.rate.error_share >= VAGUE:
            self._limits_bps.pop(site.name, None)
            return None
        if standing is None or abs(found.limit_bps - standing) > TELLING_CHANGE * standing:
            self._limits_bps[site.name] = standing = found.limit_bps
        return standing

    def _path(self, site: str) -> PathFacts:
        facts = self._facts.get(site)
        if facts is None:
            facts = self._facts[site] = _facts(self._watch.of(site))
        return facts

    def _no_multicast(self, site: Site, now: datetime, *, on: Carrier) -> str | None:
        if site.ldm_host is not None:
            return f"{site.name} keeps its LDM"
        if not site.multicast:
            return f"{site.name} is set to be served without multicast"
        until, what = self._out_until.get((site.name, on), (now, ""))
        return f"{site.name} {what} and is tested again at {until:%H:%M} UTC" if now < until else None


class Backlogs:
    """The minutes, since 1970, in which sites were behind with any feed: their measurements reflect queues."""

    def __init__(self) -> None:
        self._behind: dict[str, set[int]] = {}

    def seen(self, event: TrafficSeen, products_per_s: Callable[[str], float]) -> None:
        """Records the progress of sessions; a present backlog arrived in this minute or the one before."""
        minute = event.to_us // MINUTE_US
        for session in event.sessions:
            if any(_is_behind(progress, products_per_s(progress.feed)) for progress in session.feeds):
                self._behind.setdefault(session.site, set()).update((minute - 1, minute))

    def was_behind(self, site: str, minute: int) -> bool:
        """True if the site was behind at some time of the minute."""
        return minute in self._behind.get(site, ())

    def forget_before(self, minute: int) -> None:
        """Drops minutes that are no longer needed."""
        kept = {site: {one for one in minutes if one >= minute} for site, minutes in self._behind.items()}
        self._behind = {site: minutes for site, minutes in kept.items() if minutes}


def _is_behind(progress: SiteProgress, products_per_s: float) -> bool:
    return progress.pending > max(NEARLY_CAUGHT_UP, BEHIND_S * products_per_s)


class MatchShares:
    """The share of a feed's bytes that each site stores: over everything so far, with older data weighing less.

    One burst of products that a site wants, or does not want, says little about the feed, and a fluctuating share
    would move the site between its legs.
    """

    def __init__(self) -> None:
        self._arrived: dict[str, int] = {}
        self._at_start: dict[tuple[str, str], tuple[int, int]] = {}
        self._weighed: dict[tuple[str, str], tuple[float, float]] = {}

    def arrived(self, feed: str, size_bytes: int) -> None:
        """Counts the bytes of a feed's arrivals."""
        self._arrived[feed] = self._arrived.get(feed, 0) + size_bytes

    def settled(self, reports: Iterable[Settled], *, caught_up: frozenset[tuple[str, str]]) -> None:
        """Compares the stored products of sites with the arrivals since then; a site that lags starts afresh."""
        stored: dict[tuple[str, str], int] = {}
        for report in reports:
            key = (report.site, report.feed)
            stored[key] = stored.get(key, 0) + report.stored_bytes
        for key, stored_bytes in stored.items():
            self._compare(key, stored_bytes, caught_up=key in caught_up)

    def share(self, site: str, feed: str) -> float:
        """The measured share; 1 until it is known."""
        stored_bytes, arrived_bytes = self._weighed.get((site, feed), (1.0, 1.0))
        return min(max(stored_bytes / arrived_bytes, SMALLEST_SHARE), 1.0)

    def keep(self, sites: set[str]) -> None:
        """Drops every site except these."""
        self._at_start = {key: value for key, value in self._at_start.items() if key[0] in sites}
        self._weighed = {key: value for key, value in self._weighed.items() if key[0] in sites}

    def _compare(self, key: tuple[str, str], stored_bytes: int, *, caught_up: bool) -> None:
        arrived_bytes = self._arrived.get(key[1], 0)
        start = self._at_start.get(key)
        if not caught_up:
            self._at_start.pop(key, None)
        elif start is None:
            self._at_start[key] = (stored_bytes, arrived_bytes)
        elif arrived_bytes - start[1] >= TELLING_BYTES:
            stored, arrived = self._weighed.get(key, (0.0, 0.0))
            self._weighed[key] = (
                stored * FADING + stored_bytes - start[0],
                arrived * FADING + arrived_bytes - start[1],
            )
            self._at_start[key] = (stored_bytes, arrived_bytes)


def _facts(path: KnownPath) -> PathFacts:
    return PathFacts(
        round_trip_s=(path.least_round_trip_us or 0) / 1e6,
        loss=path.sure_loss,
        congestion=congestion_of(path.tcp.congestion if path.tcp else ""),
        connections=path.connections,
    )


def congestion_of(name: str) -> CongestionControl:
    """The congestion control of this name, if it has a model; otherwise the kernel's default."""
    known = (control for control in CongestionControl if name.startswith(control))
    return next(known, CongestionControl.CUBIC)


def _takes_all(wish: Subscription) -> bool:
    return wish.not_pattern is None and wish.pattern in ("", ".*", "^", "^.*", "^.*$", ".")


OUT_OF_GROUPS = {"never-heard": "received no multicast", "too-slow": "could not keep up with its group"}
"""States of a leg in which a site belongs in no group for now, in words that follow its name."""
NEARLY_CAUGHT_UP = 8
"""Products on their way to a site that keeps up."""
BEHIND_S = 2.0
"""Seconds of a feed's products that wait for a site which is behind: more than machines need to wake up."""
MINUTE_US = 60_000_000
TELLING_BYTES = 1_000_000
FADING = 0.98
"""Per comparison: the volume of fifty comparisons ago weighs a third."""
VAGUE = 0.5
TELLING_CHANGE = 0.25
SMALLEST_SHARE = 0.001
"""A site that takes hardly anything still costs headers."""
