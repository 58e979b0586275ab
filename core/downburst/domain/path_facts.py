"""Facts about the path to each site: from the kernel, from the clock exchange and from attempts to join groups."""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from downburst.domain.events import LegChanged, SessionTraffic, TrafficSeen
from downburst.domain.tcp.path import TcpPath
from downburst.domain.tcp.profiles import AppliedProfile
from downburst.foundation.clock import from_us


@dataclass(frozen=True, slots=True)
class GroupTried:
    """The result of a site's last attempt to receive a group: the only probe of the site's own network.

    No delivery depends on it: copies are sent until the site reports the first product that it receives by the group.
    """

    result: Literal["heard", "not-heard", "too-slow"]
    feed: str
    at: datetime
    reason: str = ""

    @property
    def heard(self) -> bool:
        """True if the site can be in a group."""
        return self.result == "heard"


@dataclass(frozen=True, slots=True)
class KnownPath:
    """Observations of the path to a site; they outlive the session."""

    at: datetime | None = None
    """The time of the last report of the site."""
    round_trip_us: int | None = None
    """From the clock exchange: includes processors and buffers on both sides."""
    clock_bound_us: int | None = None
    tcp: TcpPath | None = None
    sent_segments: float = 0.0
    resent_segments: float = 0.0
    """Recent counts: older ones weigh less."""
    connections: int = 1
    """Those that carry products."""
    group: GroupTried | None = None
    profile: AppliedProfile | None = None
    """The TCP profile of the session."""

    @property
    def least_round_trip_us(self) -> int | None:
        """The smaller of the kernel's and the clock's value."""
        known = [self.round_trip_us, self.tcp.least_round_trip_us if self.tcp else None]
        return min((value for value in known if value is not None), default=None)

    @property
    def loss(self) -> float | None:
        """The share of retransmitted segments; None with too few segments."""
        if self.sent_segments < TELLING_SEGMENTS:
            return None
        return min(self.resent_segments / self.sent_segments, 1.0)

    @property
    def sure_loss(self) -> float:
        """Loss minus two standard deviations of its count: a few retransmitted segments are not a lossy path."""
        surely = self.resent_segments - 2 * math.sqrt(self.resent_segments)
        return min(max(surely, 0.0) / max(self.sent_segments, TELLING_SEGMENTS), 1.0)


class PathWatch:
    """Follows sessions and legs; bounded by the number of sites."""

    def __init__(self) -> None:
        self._known: dict[str, KnownPath] = {}

    def of(self, site: str) -> KnownPath:
        """The observations of a site; empty for one that was never connected."""
        return self._known.get(site, KnownPath())

    def groups(self) -> dict[str, GroupTried]:
        """By site, the result of its last attempt to receive a group."""
        return {site: known.group for site, known in self._known.items() if known.group is not None}

    def hears(self, site: str) -> bool:
        """True if the site was found to receive groups."""
        tried = self.of(site).group
        return tried is not None and tried.heard

    def forget(self, site: str) -> None:
        """Drops a removed site."""
        self._known.pop(site, None)

    def keep(self, sites: Container[str]) -> None:
        """Drops every site except these."""
        self._known = {site: known for site, known in self._known.items() if site in sites}

    def traffic(self, event: TrafficSeen) -> None:
        """Records the reports of sessions, with their time."""
        self.sessions(event.sessions, from_us(event.to_us))

    def sessions(self, seen: Iterable[SessionTraffic], at: datetime | None = None) -> None:
        """Records the reports of sessions."""
        for session in seen:
            self._known[session.site] = _seen(self.of(session.site), session, at)

    def leg(self, event: LegChanged) -> None:
        """Records that a site that joined receives groups; one that never received, or was too slow, does not."""
        if event.state == "left":
            return
        tried = GroupTried(RESULTS[event.state], event.feed, event.at, _why(event))
        self._known[event.site] = replace(self.of(event.site), group=tried)


def _seen(before: KnownPath, session: SessionTraffic, at: datetime | None) -> KnownPath:
    sent, resent = _since(before.tcp, session.path)
    fading = 0.5 ** (sent / HALF_LIFE_SEGMENTS)
    return KnownPath(
        at=at,
        round_trip_us=before.round_trip_us if session.round_trip_us is None else session.round_trip_us,
        clock_bound_us=session.clock_bound_us,
        tcp=session.path or before.tcp,
        sent_segments=before.sent_segments * fading + sent,
        resent_segments=before.resent_segments * fading + resent,
        connections=max(session.streams.open, 1) if session.streams else 1,
        group=before.group,
        profile=session.tcp_profile,
    )


def _since(before: TcpPath | None, now: TcpPath | None) -> tuple[int, int]:
    """Segments since the last report; connections that began or ended restart the counts."""
    if now is None:
        return 0, 0
    steps = [] if before is None else [now.sent_segments - before.sent_segments]
    steps += [] if before is None else [now.resent_segments - before.resent_segments]
    if not steps or min(steps) < 0:
        return now.sent_segments, now.resent_segments
    return steps[0], steps[1]


def _why(event: LegChanged) -> str:
    return event.reason or WHY.get(event.state, "")


RESULTS: dict[str, Literal["heard", "not-heard", "too-slow"]] = {
    "joined": "heard",
    "never-heard": "not-heard",
    "too-slow": "too-slow",
}
WHY = {"never-heard": "no packets of the group arrived", "too-slow": "it could not keep up"}
TELLING_SEGMENTS = 1_000
HALF_LIFE_SEGMENTS = 50_000
"""Some 70 MB: a busy feed's minute."""
