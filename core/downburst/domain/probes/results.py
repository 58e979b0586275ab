"""The results of probes."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any

from downburst.domain.probes.trials import FlowResult, RoundTrip, TrialResult


@dataclass(frozen=True, slots=True)
class DelaySpread:
    """One-way delays, in microseconds by the clocks of both hosts, corrected by the session's offset."""

    min: int
    median: int
    p99: int
    max: int


@dataclass(frozen=True, slots=True)
class StepResult:
    """One rate of a probe."""

    rate_bps: int
    """As asked for."""
    sent_bps: float
    received_bps: float
    sent: int
    received: int
    lost: int
    reordered: int
    duplicated: int
    elapsed_us: int
    delay_us: DelaySpread | None = None
    """None: the offset of the clocks is not known."""
    jitter_us: float | None = None
    """RFC 3550, section 6.4.1."""
    receiver_dropped: int = 0
    """Packets that the receiver's own host had no room for; the path has not lost them."""

    @property
    def loss(self) -> float:
        """The share of packets that the path lost."""
        return self.lost / self.sent if self.sent else 0.0


@dataclass(frozen=True, slots=True)
class Excess:
    """The delay after a loss, above the least delay of the probe."""

    at_us: int
    """Since the probe's start."""
    lost: int
    excess_us: int
    recovery_us: int | None
    """Until the excess is below 1 ms again; None: it never was."""
    peak_bps: float | None = None
    """The highest rate of arrivals from the loss to the recovery; None: over UDP, where nothing is sent again."""
    backlog_bytes: int | None = None
    """Frames that waited when the excess was largest; None: over UDP."""
    predicted_us: int | None = None
    """The recovery time by the backlog and the rate that TCP has to spare; None: there is none to spare, or UDP."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """All that a probe measured, besides its seconds."""

    steps: tuple[StepResult, ...]
    sender_lag_us: int = 0
    """The largest delay of the sender behind its own schedule."""
    knee_bps: float | None = None
    knee_reason: str | None = None
    """The reason for the knee's absence, or for doubt."""
    losses: int = 0
    """Runs of lost packets."""
    excess: tuple[Excess, ...] | None = None
    variation: float | None = None
    """The coefficient of variation of the rate from second to second; None: fewer than two seconds."""
    delay_bound_us: int | None = None
    """The delays are this near the truth; None: not known."""
    congestion: str | None = None
    """The congestion control that the sender's kernel used; None: over UDP, or of several flows."""
    retransmits: int | None = None
    """Segments that the sender's kernel sent again; None: over UDP, or of several flows."""
    trials: tuple[TrialResult, ...] | None = None
    """Of `stacks` alone."""

    @property
    def confirmed_knee_bps(self) -> float | None:
        """The knee, if a higher rate lost packets; a path that carries *at least* a rate has no known limit."""
        return self.knee_bps if self.knee_reason is None else None

    @property
    def conclusive(self) -> bool:
        """True if a sweep shows a limit of the path: a confirmed knee, or rates that all lost packets.

        A path that carried all that the sender managed says nothing about higher rates.
        """
        if self.knee_bps is None:
            return any(step.sent and step.loss > KNEE_LOSS for step in self.steps)
        return self.confirmed_knee_bps is not None

    @property
    def sent(self) -> int:
        """Packets sent."""
        return sum(step.sent for step in self.steps)

    @property
    def lost(self) -> int:
        """Packets that the path lost."""
        return sum(step.lost for step in self.steps)

    @property
    def receiver_dropped(self) -> int:
        """Packets that the receiver's own host dropped."""
        return sum(step.receiver_dropped for step in self.steps)


@dataclass(frozen=True, slots=True)
class ProbeSecond:
    """A second of a probe at one rate."""

    second: int
    """From 0 at the probe's start."""
    sent: int
    received: int
    lost: int
    reordered: int
    duplicated: int
    bytes: int
    delay_us: DelaySpread | None = None
    jitter_us: float | None = None
    delay_bound_us: int | None = None
    """The delays are this near the truth."""
    receiver_dropped: int = 0
    """Packets that the receiver's own host had no room for."""


def variation(seconds: Iterable[ProbeSecond]) -> float | None:
    """The standard deviation of the bytes of a second over their mean; None if less than two arrived with any."""
    rates = [one.bytes for one in seconds]
    mean = fmean(rates) if len(rates) > 1 else 0.0
    return pstdev(rates) / mean if mean and math.isfinite(mean) else None


def result_of(values: Mapping[str, Any]) -> ProbeResult:
    """The result of its plain values, as `asdict` gives them."""
    steps = tuple(StepResult(**step | {"delay_us": _spread(step["delay_us"])}) for step in values["steps"])
    excess = values["excess"]
    after = None if excess is None else tuple(Excess(**one) for one in excess)
    # Results of before this member have none.
    trials = values.get("trials")
    compared = None if trials is None else tuple(map(_trial, trials))
    return ProbeResult(**dict(values) | {"steps": steps, "excess": after, "trials": compared})


def second_of(values: Mapping[str, Any]) -> ProbeSecond:
    """The second of its plain values."""
    return ProbeSecond(**dict(values) | {"delay_us": _spread(values["delay_us"])})


def plain(value: ProbeResult | ProbeSecond) -> dict[str, Any]:
    """Plain values, for JSON."""
    return asdict(value)


def _trial(values: Mapping[str, Any]) -> TrialResult:
    return TrialResult(**dict(values) | {"flows": tuple(map(_flow, values["flows"]))})


def _flow(values: Mapping[str, Any]) -> FlowResult:
    return FlowResult(**dict(values) | {"round_trip_us": RoundTrip(**values["round_trip_us"])})


def _spread(values: Mapping[str, int] | None) -> DelaySpread | None:
    return None if values is None else DelaySpread(**values)


KNEE_LOSS = 0.001
"""The node takes a rate with less loss as free of it (docs/node-lines.md, *Probes of paths*)."""
