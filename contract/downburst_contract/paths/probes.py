"""Probes of the paths to sites; rates are bits per second of Ethernet frames."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from downburst.domain import probes
from downburst.domain.circuits import Direction
from downburst.domain.probes import ProbeKind, ProbeState, ProbeTransport
from downburst.domain.probes.ceilings import CeilingSide
from downburst.domain.probes.checks import LEAST_PACKET, MOST_BPS, MOST_PACKET, MOST_PATIENCE_S, MOST_SOAK_S
from downburst.domain.probes.trials import MOST_CONTROLS
from downburst_contract.base import Answer, Shape, members

Rate = Annotated[int, Field(ge=1, le=MOST_BPS)]


class ProbeNew(Shape):
    """A probe to run as soon as its rate is free."""

    site: Annotated[str, Field(max_length=64)]
    kind: ProbeKind
    direction: Direction = Direction.OUT
    """`out`: from the hub, or the relay, to the site."""
    relay: Annotated[str, Field(max_length=64)] | None = None
    """The relay by which the site's session comes: the probe runs between both; left out: between hub and site."""
    rate_bps: Rate | None = None
    """The rate, the highest of a sweep, or the limit of `stacks` in each direction. Left out of a sweep or `stacks`:
    the access rate, or a guess by what is known."""
    steps: Annotated[int, Field(ge=2, le=64)] = 10
    """The rates of a sweep, in equal ratios from a tenth of the highest one to it."""
    seconds: Annotated[float, Field(ge=0.1, le=MOST_SOAK_S)] | None = None
    """Of each step of a sweep (1 if left out), of each trial of `stacks` (10), or of the whole probe (10 for `cbr`,
    3600 for `soak`)."""
    transport: ProbeTransport = ProbeTransport.UDP
    """Of `cbr` and `soak`; a sweep uses UDP, and `stacks` TCP."""
    congestion: Annotated[str, Field(max_length=15)] | None = None
    """The congestion control of `cbr` or `soak` over TCP; left out: the default of the sender's kernel."""
    stacks: Annotated[list[str], Field(min_length=1, max_length=MOST_CONTROLS)] | None = None
    """The congestion controls that `stacks` compares: each alone, and each pair. Left out: cubic, bbr and reno."""
    reverse_traffic: bool = True
    """Repeats each trial of `stacks` against a flow of the first control in the opposite direction."""
    packet_bytes: Annotated[int, Field(ge=LEAST_PACKET, le=MOST_PACKET)] = 1_200
    """The payload of a datagram, or the length of a record of a TCP stream."""
    patience_s: Annotated[float, Field(ge=0, le=MOST_PATIENCE_S)] = 60.0
    """The longest wait for free rate."""


class ProbeScheduleNew(ProbeNew):
    """A probe that repeats."""

    every_h: Annotated[int, Field(ge=1, le=744)] = 24
    first_hour: Annotated[int, Field(ge=0, le=23)] = 0
    """It begins in hours of the day, in UTC, from this one to before `end_hour`; the window may pass midnight."""
    end_hour: Annotated[int, Field(ge=1, le=24)] = 24


class ProbeStep(Answer):
    """A rate and its duration."""

    rate_bps: int
    duration_ms: int


class ProbeTrial(Answer):
    """Flows that send at the same time, each named by its congestion control."""

    flows: list[str]
    """In the probe's direction."""
    reverse: list[str]
    """In the opposite one."""
    duration_ms: int


class DelaySpread(Answer):
    """One-way delays in microseconds, corrected by the offset of the clocks."""

    min: int
    median: int
    p99: int
    max: int


class ProbeStepResult(Answer):
    """One rate of a probe, as measured."""

    rate_bps: int
    """As asked for."""
    sent_bps: float
    received_bps: float
    sent: int
    received: int
    lost: int
    loss: float
    """The share of packets that the path lost."""
    receiver_dropped: int
    """Packets that the receiver's own host had no room for; they are no loss of the path."""
    reordered: int
    duplicated: int
    elapsed_us: int
    delay_us: DelaySpread | None
    """Null: the offset of the clocks is not known, or several attempts are summed up."""
    jitter_us: float | None


class ProbeExcess(Answer):
    """The delay after a loss, above the least delay."""

    at_us: int
    lost: int
    excess_us: int
    recovery_us: int | None
    """Until the excess is below 1 ms; null: it never was."""
    peak_bps: float | None
    """The highest rate of arrivals from the loss to the recovery; null over UDP."""
    backlog_bytes: int | None
    """Frames that waited when the excess was largest; null over UDP."""
    predicted_us: int | None
    """The recovery time by the backlog and the rate to spare; null: there is none to spare, or UDP."""


class ProbeRoundTrip(Answer):
    """Round trips of a flow in microseconds, by its sender's kernel; null: it does not report them."""

    min: int | None
    mean: int | None


class ProbeFlow(Answer):
    """One flow of a trial, as measured."""

    congestion: str
    reverse: bool
    """True: in the opposite direction of the probe."""
    goodput_bps: float
    """Payload that the receiver counted."""
    retransmits: int | None
    """Segments, by the sender's kernel; null: it does not report them."""
    round_trip_us: ProbeRoundTrip


class ProbeTrialResult(Answer):
    """One trial, as measured."""

    duration_ms: int
    reason: str | None
    """The reason why it did not run; null: it ran."""
    fairness: float | None
    """Jain's index of the flows in the probe's direction, from 1/n to 1; null: fewer than two."""
    limited: bool
    """True: the probe's own limit was the bottleneck, and not the path."""
    flows: list[ProbeFlow]
    shares: list[float | None]
    """Of each flow, the part of the goodput of its direction; null where nothing arrived."""


class ProbeResult(Answer):
    """All that a probe measured."""

    steps: list[ProbeStepResult]
    sender_lag_us: int
    """The largest delay of the sender behind its own schedule."""
    knee_bps: float | None
    """The highest rate without loss; null: none was found, or this was no sweep."""
    knee_reason: str | None
    losses: int
    """Runs of lost packets."""
    excess: list[ProbeExcess] | None
    variation: float | None
    """A soak's coefficient of variation of the rate from second to second."""
    delay_bound_us: int | None
    """The delays are this near the truth; null: not known."""
    congestion: str | None
    """The congestion control that the sender's kernel used; null over UDP, and of `stacks`."""
    retransmits: int | None
    """Segments that the sender's kernel sent again; null over UDP, and of `stacks`."""
    trials: list[ProbeTrialResult] | None
    """Of `stacks` alone."""


class ProbeGap(Answer):
    """An interruption of a soak."""

    since: datetime
    until: datetime | None
    reason: str


class ProbeSecond(Answer):
    """A second of a probe at one rate."""

    second: int
    sent: int
    received: int
    lost: int
    reordered: int
    duplicated: int
    bytes: int
    delay_us: DelaySpread | None
    jitter_us: float | None
    delay_bound_us: int | None
    receiver_dropped: int


class ProbeAsked(Answer):
    """A probe as it was asked for."""

    id: int
    site: str
    kind: ProbeKind
    direction: Direction
    steps: list[ProbeStep]
    """Of `stacks` one: the limit of the rate, and the duration of all trials."""
    packet_bytes: int
    patience_s: float
    requested_by: str
    transport: ProbeTransport
    congestion: str | None
    """The requested one of a TCP stream; null: the default of the sender's kernel."""
    trials: list[ProbeTrial]
    """Of `stacks` alone."""
    relay: str | None


class Probe(ProbeAsked):
    """A probe with its outcome."""

    state: ProbeState
    reason: str
    """Of its wait, its refusal or its end."""
    requested_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    attempts: int
    """A soak may have several."""
    schedule: int | None
    circumstances: dict[str, Any]
    """The state of the path at the start: software, plans, load, way, round trip, clock, reserved ports."""
    gaps: list[ProbeGap]
    result: ProbeResult | None

    @classmethod
    def of(cls, probe: probes.Probe) -> Self:
        """A probe for clients."""
        return cls(**members(probe, without=("request", "stop_by")), **_asked(probe.request))


class ProbeSchedule(ProbeAsked):
    """A probe that repeats."""

    every_h: int
    first_hour: int
    end_hour: int
    next_at: datetime
    created_at: datetime | None

    @classmethod
    def of(cls, schedule: probes.ProbeSchedule) -> Self:
        """A schedule for clients."""
        return cls(**members(schedule, without=("request",)), **_asked(schedule.request))


class ProbeCeilingWanted(Shape):
    """A ceiling of a site's probes; null, or left out: none of that kind."""

    rate_bps: Annotated[int, Field(ge=0, le=MOST_BPS)] | None = None
    """0 forbids probes."""
    bytes_per_day: Annotated[int, Field(ge=0, le=2**53)] | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"rate_bps", "bytes_per_day"}


class ProbeCeiling(Answer):
    """One side's ceiling."""

    side: CeilingSide
    rate_bps: int | None
    bytes_per_day: int | None
    set_by: str
    set_at: datetime | None


class ProbeCeilings(Answer):
    """All ceilings of a site's probes: each holds."""

    site: str
    ceilings: list[ProbeCeiling]
    default_bytes_per_day: int
    """Holds where neither side sets another."""
    used_bytes: int
    """By the probes that started today, in UTC."""


def _asked(request: probes.ProbeRequest) -> dict[str, Any]:
    return members(request, requested_by="by")
