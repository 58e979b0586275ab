"""What is known of the way to each site: by the kernel, by the clock exchange and by groups that were tried."""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from downburst.domain.events import LegChanged, SessionTraffic, TcpPath, TrafficSeen
from downburst.foundation.clock import from_us


@dataclass(frozen=True, slots=True)
class GroupTried:
    """How it went when a site was last told to hear a group: the only probe that tells of the site's own network.

    Nothing depends on it while it goes on: copies are sent until the site says from which product on it hears.
    """

    result: Literal["heard", "not-heard", "too-slow"]
    feed: str
    at: datetime
    reason: str = ""

    @property
    def heard(self) -> bool:
        """Whether the site can be in a group."""
        return self.result == "heard"


@dataclass(frozen=True, slots=True)
class KnownPath:
    """What was seen of the way to a site; it outlives the session."""

    at: datetime | None = None
    """When the site was last told of."""
    round_trip_us: int | None = None
    """Of the clock exchange: processors and buffers on both sides are in it."""
    clock_bound_us: int | None = None
    tcp: TcpPath | None = None
    sent_segments: float = 0.0
    resent_segments: float = 0.0
    """Of late: what is longer ago weighs less."""
    connections: int = 1
    """Those that carry products."""
    group: GroupTried | None = None

    @property
    def least_round_trip_us(self) -> int | None:
        """The shorter of what kernel and clock say."""
        known = [self.round_trip_us, self.tcp.least_round_trip_us if self.tcp else None]
        return min((value for value in known if value is not None), default=None)

    @property
    def loss(self) -> float | None:
        """The share of segments that were sent again; None before there were enough to tell."""
        if self.sent_segments < TELLING_SEGMENTS:
            return None
        return min(self.resent_segments / self.sent_segments, 1.0)

    @property
    def sure_loss(self) -> float:
        """Loss less two standard deviations of its count: a segment or two that were sent again are no lossy path."""
        surely = self.resent_segments - 2 * math.sqrt(self.resent_segments)
        return min(max(surely, 0.0) / max(self.sent_segments, TELLING_SEGMENTS), 1.0)


class PathWatch:
    """Follows sessions and legs; bounded by the number of sites."""

    def __init__(self) -> None:
        self._known: dict[str, KnownPath] = {}

    def of(self, site: str) -> KnownPath:
        """What is known of a site; nothing of one that was never connected."""
        return self._known.get(site, KnownPath())

    def groups(self) -> dict[str, GroupTried]:
        """By site, how it went when it was last told to hear a group."""
        return {site: known.group for site, known in self._known.items() if known.group is not None}

    def hears(self, site: str) -> bool:
        """Whether the site was found to hear groups."""
        tried = self.of(site).group
        return tried is not None and tried.heard

    def forget(self, site: str) -> None:
        """Lets go of a site that was removed."""
        self._known.pop(site, None)

    def keep(self, sites: Container[str]) -> None:
        """Lets go of every site but these."""
        self._known = {site: known for site, known in self._known.items() if site in sites}

    def traffic(self, event: TrafficSeen) -> None:
        """Takes what sessions told, and when."""
        self.sessions(event.sessions, from_us(event.to_us))

    def sessions(self, seen: Iterable[SessionTraffic], at: datetime | None = None) -> None:
        """Takes what sessions told."""
        for session in seen:
            self._known[session.site] = _seen(self.of(session.site), session, at)

    def leg(self, event: LegChanged) -> None:
        """A site that joined hears groups; one that never heard, or could not keep up, does not."""
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
    )


def _since(before: TcpPath | None, now: TcpPath | None) -> tuple[int, int]:
    """Segments since the last telling; connections that began or ended make the counts begin anew."""
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
