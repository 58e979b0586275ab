"""Probes of the paths to sites: test packets between a hub's node and a site's, at requested rates.

Rates are in bits per second of Ethernet frames, as those of multicast legs.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from downburst.domain.circuits import Direction
from downburst.domain.probes.results import ProbeResult
from downburst.domain.probes.trials import Trial


class ProbeKind(StrEnum):
    """The measurements that a probe makes."""

    KNEE = "knee"
    """A sweep of rising rates: the highest one without loss is a multicast rate that the path carries."""
    CBR = "cbr"
    """One rate: delay, jitter, loss, and the delay's excess after each loss."""
    SOAK = "soak"
    """One rate for hours: the variation of the rate from second to second. It continues after an interruption."""
    STACKS = "stacks"
    """TCP flows of several congestion controls, alone and beside each other, as fast as a limit allows."""


class ProbeTransport(StrEnum):
    """The protocol that carries the packets of a probe."""

    UDP = "udp"
    TCP = "tcp"
    """A lost packet is repaired, and costs delay instead of data."""


class ProbeState(StrEnum):
    """The states of a probe."""

    WAITING = "waiting"
    """For its turn, for free rate, or for the site."""
    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    """It never ran; the reason names the holder of the rate, or the ceiling."""
    STOPPED = "stopped"
    """By a person, by a circuit that needs its rate, or because products became late."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """A rate and its duration."""

    rate_bps: int
    duration_ms: int

    @property
    def frame_bytes(self) -> int:
        """Bytes of frames that it sends."""
        return self.rate_bps * self.duration_ms // 8_000


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A probe as it is requested."""

    site: str
    kind: ProbeKind
    direction: Direction
    """Out: from the hub, or the relay, to the site."""
    steps: tuple[ProbeStep, ...]
    """Of `stacks` one: the limit of the rate, and the duration of all trials."""
    packet_bytes: int = 1_200
    """The payload of a datagram, or the length of a record of a TCP stream."""
    patience_s: float = 60.0
    """The longest wait for the start."""
    by: str = ""
    transport: ProbeTransport = ProbeTransport.UDP
    congestion: str | None = None
    """The congestion control of a TCP stream; None: the default of the sender's kernel."""
    trials: tuple[Trial, ...] = ()
    """Of `stacks` alone."""
    relay: str | None = None
    """The relay of the site's session that takes the hub's part; None: the node that has the session."""

    @property
    def ends(self) -> tuple[str, ...]:
        """The sites that take part; a relay is one."""
        return (self.site,) if self.relay is None else (self.site, self.relay)

    @property
    def over_tcp(self) -> bool:
        """True if its packets go by TCP."""
        return self.transport is ProbeTransport.TCP or self.kind is ProbeKind.STACKS

    @property
    def highest_bps(self) -> int:
        """The rate that it reserves in each direction in which it sends."""
        return max(step.rate_bps for step in self.steps)

    @property
    def sends_both_ways(self) -> bool:
        """True if it has reverse traffic."""
        return any(trial.reverse for trial in self.trials)

    def rate_bps(self, direction: Direction) -> int:
        """The rate that it reserves in one direction."""
        return self.highest_bps if self.sends_both_ways or direction is self.direction else 0

    @property
    def seconds(self) -> float:
        """Its duration, without the steps that refine a sweep."""
        return sum(step.duration_ms for step in self.steps) / 1e3

    @property
    def frame_bytes(self) -> int:
        """Bytes of frames that it sends at most, in both directions together."""
        return sum(step.frame_bytes for step in self.steps) + self._reverse_bytes

    @property
    def _reverse_bytes(self) -> int:
        duration_ms = sum(trial.duration_ms for trial in self.trials if trial.reverse)
        return ProbeStep(self.highest_bps, duration_ms).frame_bytes


@dataclass(frozen=True, slots=True)
class ProbeGap:
    """An interruption of a soak."""

    since: datetime
    until: datetime | None
    """None: it has not continued yet."""
    reason: str


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe with its outcome."""

    id: int
    request: ProbeRequest
    state: ProbeState
    requested_at: datetime
    reason: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 0
    """Its starts; a soak may have several."""
    schedule: int | None = None
    """The schedule that asked for it."""
    stop_by: str = ""
    """Who asked for its end before its time."""
    circumstances: dict[str, Any] = field(default_factory=dict)
    """The state of the path at the start: software, plans, load, way, round trip, clock."""
    gaps: tuple[ProbeGap, ...] = ()
    result: ProbeResult | None = None

    @property
    def ended(self) -> bool:
        """True if it will not run any more."""
        return self.state in ENDED

    @property
    def name(self) -> str:
        """The present attempt's name at the node."""
        return f"p{self.id}-{self.attempts}"


@dataclass(frozen=True, slots=True)
class ProbeSchedule:
    """A probe that repeats."""

    id: int
    request: ProbeRequest
    every_h: int
    next_at: datetime
    first_hour: int = 0
    """It begins in hours of the day, in UTC, from this one to before `end_hour`; the window may pass midnight."""
    end_hour: int = 24
    created_at: datetime | None = None

    def open_at(self, hour: int) -> bool:
        """True if a probe may begin in this hour of the day."""
        if self.first_hour < self.end_hour:
            return self.first_hour <= hour < self.end_hour
        return hour >= self.first_hour or hour < self.end_hour


ENDED = frozenset({ProbeState.DONE, ProbeState.REFUSED, ProbeState.STOPPED, ProbeState.FAILED})
