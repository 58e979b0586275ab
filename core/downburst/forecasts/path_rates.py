"""Forecasts of the rates of paths to sites, from the reports of their sessions; scheduler and API use the same."""

from collections import deque
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from downburst.domain.events import TrafficSeen
from downburst.domain.plans import Transport
from downburst.domain.sites import Site
from downburst.domain.tcp.path import TcpPath
from downburst.forecasts.fused import Forecast, Fused
from downburst.forecasts.predictors import Sample
from downburst.foundation.clock import from_us


@dataclass(frozen=True, slots=True)
class PathForecast:
    """The rate to expect of a path, and a rate that it was seen to carry."""

    rate: Forecast
    at_least_bps: float
    """The highest rate of late, also of reports that are no measurement of the path; 0 without any."""

    @property
    def limit_bps(self) -> float:
        """A rate that the path will hardly exceed: the forecast plus its error, and no less than was seen."""
        return max(self.rate.rate_bps + self.rate.error_bps, self.at_least_bps)


@dataclass(slots=True)
class _Measured:
    """The kept measurements of one site."""

    fused: Fused = field(default_factory=Fused)
    times: deque[datetime] = field(default_factory=deque)
    """Those of the samples in the window."""
    before: tuple[str, TcpPath] | None = None
    """The sender and the last report of the present session."""
    at_least_bps: float = 0.0
    at_least_at: datetime | None = None
    forecast: Forecast | None = None
    """That of the present samples, once it was asked for."""

    def add(self, sample: Sample, at: datetime) -> None:
        self.drop_before(at - KEPT)
        if self.times and at - self.times[-1] > LONGEST_PAUSE:
            self.fused, self.times = Fused(), deque()
        if self.fused.add(sample):
            self.times.append(at)
            self.forecast = None
        while len(self.times) > len(self.fused):
            self.times.popleft()

    def sent_segments(self, sender: str, path: TcpPath) -> int:
        """Segments since the last report by the same sender; 0 without one."""
        before, self.before = self.before, (sender, path)
        if before is None or before[0] != sender:
            return 0
        return path.sent_segments - before[1].sent_segments

    def drop_before(self, at: datetime) -> None:
        while self.times and self.times[0] < at:
            self.times.popleft()
            self.fused.drop_oldest()
            self.forecast = None

    def carried(self, rate_bps: float, at: datetime) -> None:
        if self.at_least_at is None or rate_bps >= self.at_least_bps or at - self.at_least_at > CARRIED_OF_LATE:
            self.at_least_bps, self.at_least_at = rate_bps, at

    def of_now(self, now: datetime) -> PathForecast | None:
        """The forecast, if it rests on enough samples that are recent enough."""
        self.drop_before(now - KEPT)
        if len(self.times) < FEWEST or now - self.times[-1] > LONGEST_PAUSE:
            return None
        if self.forecast is None:
            self.forecast = self.fused.forecast(self.fused.typical_bytes)
        recent = self.at_least_at is not None and now - self.at_least_at <= CARRIED_OF_LATE
        return PathForecast(self.forecast, self.at_least_bps if recent else 0.0) if self.forecast else None


@dataclass(frozen=True, slots=True)
class _Report:
    """A session's report that it was at its limit, or a transfer, which is at the limit by itself."""

    site: str
    at: datetime
    rate_bps: float
    by_unicast: bool
    """True if all the site's feeds go by unicast on the routed path."""
    size_bytes: int | None = None
    """That of the transfer."""


@dataclass(slots=True)
class _Sender:
    """The recent past of a node: which sessions were at their limit, and what its groups sent."""

    at: datetime
    limited: list[_Report] = field(default_factory=list)
    groups_bps: deque[tuple[datetime, float]] = field(default_factory=deque)

    def seen(self, at: datetime, limited: Iterable[_Report], groups_bps: float) -> list[_Report]:
        """Takes the reports of a second; returns those of some seconds ago that measured a path.

        Sessions ask the kernel at different times, every five seconds. So a report waits until those of the others
        from before and after it are there.
        """
        due, begin = at - BETWEEN_REPORTS, at - 2 * BETWEEN_REPORTS
        self.groups_bps.append((at, groups_bps))
        while self.groups_bps[0][0] < begin:
            self.groups_bps.popleft()
        self.limited = [one for one in self.limited if one.at >= begin]
        self.limited.extend(limited)
        alone = len({one.site for one in self.limited}) == 1
        most_bps = max(rate_bps for _, rate_bps in self.groups_bps)
        ripe = [one for one in self.limited if self.at - BETWEEN_REPORTS < one.at <= due]
        self.at = at
        return [one for one in ripe if alone and one.by_unicast and most_bps <= one.rate_bps]


class PathRates:
    """Follows the reports of sessions; bounded by the numbers of sites and of senders.

    A report's rate measures the path only if nothing else explains it. It counts if

    * the connections had more to send at the time of the report (`is_lower_bound` is false);
    * the session sent at least 100 segments since its last report: a few packets are no rate;
    * all the site's feeds go by unicast: the hub shapes a circuit, and a group takes its part of the site's line;
    * no other session of the node was at its limit within seconds, and the node's groups sent less than this rate:
      otherwise the node's own port may be the limit, which the models share out by themselves.

    Forecasts near the rate to which the hub paces the site are withheld (`of`).

    A report covers seconds, not one transfer: its bytes follow from its rate, so its sample has no size. Single
    transfers that had the session to themselves are samples with their sizes, by the last two conditions. If most
    samples are transfers, the forecast is that of a transfer of their median size.
    """

    def __init__(self) -> None:
        self._sites: dict[str, _Measured] = {}
        self._senders: dict[str, _Sender] = {}

    def traffic(self, event: TrafficSeen) -> None:
        """Records the reports of a node's sessions."""
        at = from_us(event.to_us)
        for site in event.gone:
            if site in self._sites:
                self._sites[site].before = None
        limited = list(self._limited(event, at))
        self._senders = {name: one for name, one in self._senders.items() if at - one.at < FORGOTTEN}
        sender = self._senders.setdefault(event.sender, _Sender(at))
        for report in sender.seen(at, limited, _groups_bps(event)):
            if report.site in self._sites:
                self._sites[report.site].add(Sample(report.rate_bps, report.size_bytes), report.at)

    def _limited(self, event: TrafficSeen, at: datetime) -> Iterator[_Report]:
        """The new reports of sessions at their limit; a session that just began has nothing to compare with."""
        for session in event.sessions:
            path = session.path
            if path is None:
                continue
            kept = self._sites.setdefault(session.site, _Measured())
            by_unicast = all(one.transport is Transport.UNICAST for one in session.feeds)
            for one in session.transfers:
                # What other sessions did during a longer one is not known any more; reports of seconds cover it.
                if one.took_us <= BETWEEN_REPORTS / MICROSECOND:
                    yield _Report(session.site, at, one.rate_bps, by_unicast, one.bytes)
            sent = kept.sent_segments(event.sender, path)
            if sent >= TELLING_SEGMENTS:
                kept.carried(path.rate_bps, at)
                if not path.is_lower_bound:
                    yield _Report(session.site, at, path.rate_bps, by_unicast)

    def of(self, site: Site, now: datetime) -> PathForecast | None:
        """The forecast of the path to a site; None without enough recent samples, or if the hub paces the site.

        A site with an access rate or a ceiling is paced to it. A forecast of seven tenths of the lowest such rate
        since the oldest sample, or more, may reflect that pace, and would outlast the hour of a ceiling.
        """
        measured = self._sites.get(site.name)
        found = measured.of_now(now) if measured else None
        if measured is None or found is None:
            return None
        hours = _hours(measured.times[0], now)
        pace_bps = min((pace for hour in hours if (pace := site.pace_bps(hour))), default=None)
        if pace_bps is not None and found.rate.rate_bps >= PACED * pace_bps:
            return None
        return found

    def keep(self, sites: Container[str]) -> None:
        """Drops every site except these."""
        self._sites = {site: measured for site, measured in self._sites.items() if site in sites}

    def forget(self, site: str) -> None:
        """Drops a removed site."""
        self._sites.pop(site, None)


def _groups_bps(event: TrafficSeen) -> float:
    sent_bytes = sum(leg.egress_bytes for leg in event.legs if leg.transport is Transport.MULTICAST)
    return sent_bytes * 8 / event.seconds


def _hours(since: datetime, until: datetime) -> set[int]:
    steps = int((until - since) / HOUR) + 1
    return {(since + HOUR * step).hour for step in range(steps)} | {until.hour}


FEWEST = 10
"""Samples of which a forecast is made."""
LONGEST_PAUSE = timedelta(hours=1)
"""After it, the samples before say nothing about the path."""
KEPT = timedelta(hours=3)
CARRIED_OF_LATE = timedelta(minutes=10)
TELLING_SEGMENTS = 100
BETWEEN_REPORTS = timedelta(seconds=6)
"""A node asks the kernel about each session every five seconds."""
FORGOTTEN = timedelta(minutes=1)
"""A node that reports no traffic for that long has ended."""
PACED = 0.7
HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
