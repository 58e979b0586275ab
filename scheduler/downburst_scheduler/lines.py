"""The lines of each feed's sites, by the feed's groups in the routed network and what arrives at the sites."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from downburst.domain.events import LegChanged, LegTraffic, TrafficSeen
from downburst.domain.plans import LegTrial, Plan, Transport, leg_figure
from downburst.domain.readings import HostReading
from downburst_scheduler.figures.wording import megabits
from downburst_scheduler.models.lines.trials import (
    FORGOTTEN_S,
    Line,
    Point,
    TrialRules,
    left,
    observed,
    probed,
    stepped,
)
from downburst_scheduler.probed import TimedSweep

IsNetwork = Callable[[str, int], bool]
"""True for a leg of a feed that is a group of the routed network: circuits and relays have paths of their own."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """The group that a site receives."""

    sender: str
    leg: int
    since_s: float


class LineWatch:
    """Follows the trials of legs; bounded by the number of feeds times sites."""

    def __init__(self, rules: TrialRules) -> None:
        self._rules = rules
        self._lines: dict[str, dict[str, Line]] = {}
        """By feed and site."""
        self._on: dict[tuple[str, str], Hearing] = {}
        """By feed and site."""
        self._read: dict[tuple[str, str], HostReading] = {}
        """By feed and site, the last reading of the site's host."""
        self._paces_bps: dict[tuple[str, int], int] = {}
        """By feed and group, the rate at which it was last sent."""
        self._unjudged: dict[str, dict[str, float]] = {}
        """By feed and site, the begin of losses that are measured, and not judged yet."""
        self._swept: Mapping[str, TimedSweep] | None = None
        """By site, the last sweep of its path; None before the first look: those are of earlier times."""

    def line(self, feed: str, site: str) -> Line:
        """The knowledge of a site's line; an empty one if there is none."""
        return self._lines.get(feed, {}).get(site, Line())

    def resumed(self, plan: Plan, now_s: float) -> None:
        """Continues with the limits of a plan of an earlier run."""
        for leg in plan.legs if self._rules.enabled else ():
            limit_bps = plan.figures.get(leg_figure(leg.leg, "line_bps"))
            if isinstance(limit_bps, float):
                wait_s = self._rules.retry_s
                line = Line(limit_bps, retry_at_s=now_s + wait_s, backoff_s=wait_s)
                self._lines.setdefault(plan.feed, {}).update(dict.fromkeys(leg.sites, line))

    def keep(self, feeds: Container[str], sites: Container[str]) -> None:
        """Drops all feeds and sites except these."""
        self._lines = {
            feed: {site: line for site, line in lines.items() if site in sites}
            for feed, lines in self._lines.items()
            if feed in feeds
        }
        self._unjudged = {
            feed: {site: since_s for site, since_s in unjudged.items() if site in sites}
            for feed, unjudged in self._unjudged.items()
            if feed in feeds
        }
        self._on = {key: on for key, on in self._on.items() if key[0] in feeds and key[1] in sites}
        self._read = {key: reading for key, reading in self._read.items() if key[0] in feeds and key[1] in sites}
        self._paces_bps = {key: rate for key, rate in self._paces_bps.items() if key[0] in feeds}

    def swept(self, sweeps: Mapping[str, TimedSweep], now_s: float) -> None:
        """Takes the last sweeps of the sites' paths; a new one may make a trial due."""
        known, self._swept = self._swept, sweeps
        new = [] if known is None else [one for one in sweeps.items() if known.get(one[0]) != one[1]]
        for site, found in new:
            for lines in self._lines.values():
                if site in lines and found.sweep.knee_bps is not None:
                    lines[site] = probed(lines[site], found.sweep.knee_bps, now_s)

    def traffic(self, event: TrafficSeen, now_s: float, is_network: IsNetwork) -> dict[str, list[str]]:
        """Records a node's second; returns the feeds with the sites whose usable rate changed."""
        changed: dict[str, list[str]] = {}
        for session in event.sessions:
            for one in session.feeds:
                if self._rules.enabled and one.reading and is_network(one.feed, one.reading.leg):
                    self._measured((one.feed, session.site), one.reading, now_s, changed)
                on = Hearing(event.sender, one.leg, now_s) if one.transport is Transport.MULTICAST else None
                self._place((one.feed, session.site), on)
        for leg in event.legs:
            if leg.rate_bps is not None:
                self._paces_bps[leg.feed, leg.leg] = leg.rate_bps
            if self._rules.enabled and leg.trials and is_network(leg.feed, leg.leg):
                self._tried(leg, event.sender, now_s, changed)
        for feed, lines in self._lines.items():
            after = stepped(lines, now_s, self._rules)
            for site in after:
                if _moves(lines[site], after[site]):
                    changed.setdefault(feed, []).append(site)
            self._lines[feed] = after
        return changed

    def judging(self, now_s: float) -> list[str]:
        """The feeds of which a host measured losses this second that are not judged yet.

        Their groups are perhaps too fast for a line: what is repaired there is no guide to other groups. Losses that
        several measurements do not explain are no word of a line, and count after a while.
        """
        return [
            feed
            for feed, sites in self._unjudged.items()
            if any(self._waits_for_judgement(feed, site, since_s, now_s) for site, since_s in sites.items())
        ]

    def leg_changed(self, event: LegChanged, now_s: float) -> bool:
        """Records that a site left a group; True if its usable rate is known."""
        if event.state != "joined":
            self._on.pop((event.feed, event.site), None)
        if event.state == "too-slow" and self._rules.enabled:
            lines = self._lines.setdefault(event.feed, {})
            lines[event.site] = left(lines.get(event.site, Line()), now_s, self._rules)
        return self.line(event.feed, event.site).limit_bps is not None

    def paces(self, plan: Plan) -> dict[str, float]:
        """The rates at which the groups of a plan were last sent, as figures; drops those of its former groups."""
        legs = {leg.leg for leg in plan.legs}
        self._paces_bps = {
            (feed, leg): rate for (feed, leg), rate in self._paces_bps.items() if feed != plan.feed or leg in legs
        }
        own = ((leg, rate_bps) for (feed, leg), rate_bps in self._paces_bps.items() if feed == plan.feed)
        return {leg_figure(leg, "paced_bps"): float(rate_bps) for leg, rate_bps in own}

    def words(self, feed: str, site: str) -> str:
        """The reason of a site's usable rate, for people; empty without one."""
        line = self.line(feed, site)
        if line.trial is not None:
            return f"{site} is tried at a faster rate" if line.limit_bps else f"{site} is tried in a group again"
        if line.seen is None:
            return f"{site} left a faster group before its line was measured" if line.limit_bps else ""
        carried = megabits(line.seen.received_bps)
        return f"the line of {site} carried {carried} of a group of {megabits(line.seen.rate_bps)}"

    def _waits_for_judgement(self, feed: str, site: str, since_s: float, now_s: float) -> bool:
        excess = self.line(feed, site).excess
        return excess is not None and excess.at_s == now_s and now_s - since_s <= JUDGED_WITHIN_S

    def _place(self, key: tuple[str, str], on: Hearing | None) -> None:
        before = self._on.get(key)
        if on is None:
            self._on.pop(key, None)
        elif before is None or (before.sender, before.leg) != (on.sender, on.leg):
            self._on[key] = on

    def _measured(
        self, key: tuple[str, str], reading: HostReading, now_s: float, changed: dict[str, list[str]]
    ) -> None:
        """Takes a new measurement of a host. Datagrams for which the host had no room say nothing of its line."""
        known, self._read[key] = self._read.get(key), reading
        line = reading.line
        if known is None or line is None or line == known.line or reading.dropped != known.dropped:
            return
        tried = Point(float(line.offered_bps), line.packets, line.lost, now_s, float(line.arrived_bps))
        self._learn(key, tried, changed)

    def _tried(self, leg: LegTraffic, sender: str, now_s: float, changed: dict[str, list[str]]) -> None:
        settled = [
            site
            for (feed, site), on in self._on.items()
            if feed == leg.feed and (on.sender, on.leg) == (sender, leg.leg) and now_s - on.since_s >= HEARS_S
        ]
        for trial in leg.trials:
            for site, lost in _losses(trial, settled):
                tried = Point(float(trial.rate_bps), trial.packets, lost, now_s)
                self._learn((leg.feed, site), tried, changed)

    def _learn(self, key: tuple[str, str], tried: Point, changed: dict[str, list[str]]) -> None:
        feed, site = key
        lines = self._lines.setdefault(feed, {})
        before = lines.get(site, Line())
        lines[site] = after = self._observed(before, tried)
        unjudged = self._unjudged.setdefault(feed, {})
        if after.excess is None:
            unjudged.pop(site, None)
        elif before.excess is None or tried.at_s - before.excess.at_s > FORGOTTEN_S:
            unjudged[site] = tried.at_s
        if after.usable_bps != before.usable_bps:
            changed.setdefault(feed, []).append(site)

    def _observed(self, line: Line, tried: Point) -> Line:
        """Most sites lose nothing at a rate that they are known to carry, which takes no time."""
        if not tried.lost and line.limit_bps is None and line.excess is None and line.trial is None:
            faster = tried.rate_bps > line.carried_bps and tried.packets > 0
            return replace(line, carried_bps=tried.rate_bps) if faster else line
        return observed(line, tried, self._rules)


def _moves(before: Line, after: Line) -> bool:
    """True if the site may go to another group, or back to the one that it left."""
    return after.usable_bps != before.usable_bps or (after.trial is not None and before.trial is None)


def _losses(trial: LegTrial, settled: Iterable[str]) -> Iterator[tuple[str, int]]:
    lost = dict(trial.lost)
    yield from lost.items()
    yield from ((site, 0) for site in settled if site not in lost)


JUDGED_WITHIN_S = 60.0
"""Three products of a feed that has one every twenty seconds."""
HEARS_S = 3.0
"""A trial is reported up to two seconds after its packets. A site that joined since then lost none of them."""
