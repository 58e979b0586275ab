"""Attempts of probes: what is known of a running one, its end, and the parts of a soak."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from downburst.domain.probes import Probe, ProbeGap, ProbeKind, ProbeRequest, ProbeState, ProbeStep
from downburst.domain.probes.checks import MOST_REFINING
from downburst.domain.probes.results import ProbeResult, StepResult
from downburst.domain.probes.signs import ProbeOver, ProbeSecondReported
from downburst.domain.probes.trials import PAUSE_S
from downburst.domain.topology.bookings import BookedTest
from downburst_probes.legs import Legs, NewLeg


@dataclass(slots=True)
class Attempt:
    """A running attempt."""

    probe: Probe
    began: datetime
    ends_by_s: float
    """By the monotonic clock: the node should have reported its end by then."""
    booking: BookedTest | None = None
    late_before: frozenset[tuple[str, str]] = frozenset()
    """Paths that were late before it began."""
    node: str = ""
    """The sender at which it runs; empty: the hub's own node."""
    run: str | None = None
    """The id of that node's process."""
    began_s: float = 0.0
    """Its start by the monotonic clock."""
    legs: Legs = field(default_factory=dict[tuple[str, str, str], int])
    """The legs to its sites when it began."""
    new_leg: NewLeg | None = None
    """A leg that began since."""
    stopping: tuple[ProbeState, str] | None = None
    """The outcome and reason of an end before its time."""
    stopped_s: float = math.inf
    """The time of the request to stop, by the monotonic clock."""
    over: ProbeOver | None = None
    """The node's report of its end."""
    reported: list[ProbeSecondReported] = field(default_factory=list)
    """Seconds that are not stored yet."""

    @property
    def first_second(self) -> int:
        """The number of its first second among those of the probe."""
        begin = self.probe.started_at or self.began
        return max(round((self.began - begin).total_seconds()), 0)

    def is_over(self, now_s: float) -> bool:
        """True if the node reported its end, or will not."""
        return self.over is not None or now_s > min(self.ends_by_s, self.stopped_s + STOP_S)


def outcome(attempt: Attempt) -> tuple[ProbeState, str]:
    """The state and the reason after an attempt."""
    if attempt.stopping is not None:
        return attempt.stopping
    if attempt.over is None:
        return ProbeState.FAILED, "its node did not report its end in time"
    words = attempt.over.reason or ""
    match attempt.over.outcome:
        case "done":
            return ProbeState.DONE, words
        case "stopped":
            return ProbeState.STOPPED, words or "its node stopped it"
        case _:
            return ProbeState.FAILED, words or "its node gave no reason"


def after_attempt(attempt: Attempt, now: datetime) -> Probe:
    """The probe after an attempt: ended, or a soak that waits to continue."""
    state, reason = outcome(attempt)
    result = attempt.over.result if attempt.over else None
    probe = replace(attempt.probe, result=merged(attempt.probe.result, result))
    if state is ProbeState.FAILED and continues(probe, now):
        return interrupted(probe, now, reason)
    return replace(probe, state=state, reason=reason, ended_at=now)


def continues(probe: Probe, now: datetime) -> bool:
    """True if a soak has time left for another attempt."""
    return probe.request.kind is ProbeKind.SOAK and planned_end(probe, now) - now > LEAST_REST


def interrupted(probe: Probe, since: datetime, reason: str) -> Probe:
    """A soak that waits to continue."""
    gaps = (*probe.gaps, ProbeGap(since, None, reason))[-MOST_GAPS:]
    return replace(probe, state=ProbeState.WAITING, reason=f"it continues soon: {reason}", gaps=gaps)


def begun(probe: Probe, now: datetime) -> Probe:
    """The probe with another attempt, and its last gap closed."""
    gaps = tuple(replace(gap, until=now) if gap.until is None else gap for gap in probe.gaps)
    return replace(
        probe,
        state=ProbeState.RUNNING,
        reason="",
        attempts=probe.attempts + 1,
        started_at=probe.started_at or now,
        gaps=gaps,
    )


def as_attempted(probe: Probe, now: datetime) -> Probe:
    """The probe with the steps of the present attempt: a soak lasts until its planned end."""
    if probe.request.kind is not ProbeKind.SOAK:
        return probe
    rest_ms = max(round((planned_end(probe, now) - now).total_seconds() * 1e3), 100)
    steps = tuple(ProbeStep(step.rate_bps, min(rest_ms, step.duration_ms)) for step in probe.request.steps)
    return replace(probe, request=replace(probe.request, steps=steps))


def planned_end(probe: Probe, now: datetime) -> datetime:
    """The end of a probe that started, or starts now."""
    return (probe.started_at or now) + timedelta(seconds=probe.request.seconds)


def merged(before: ProbeResult | None, more: ProbeResult | None) -> ProbeResult | None:
    """The sum of two attempts; delays of several are in the seconds alone."""
    if before is None or more is None:
        return before or more
    pairs = list(zip(before.steps, more.steps, strict=False))
    rest = before.steps[len(pairs) :] + more.steps[len(pairs) :]
    steps = tuple(_added(one, other) for one, other in pairs) + rest
    return ProbeResult(
        steps,
        max(before.sender_lag_us, more.sender_lag_us),
        losses=before.losses + more.losses,
        congestion=more.congestion or before.congestion,
        retransmits=None if more.retransmits is None else (before.retransmits or 0) + more.retransmits,
    )


def frame_bytes(result: ProbeResult | None) -> int:
    """Bytes of frames that a probe sent, by its result."""
    if result is None:
        return 0
    of_steps = sum(step.sent_bps * step.elapsed_us / 8e6 for step in result.steps)
    return round(of_steps) + sum(trial.frame_bytes for trial in result.trials or ())


def numbered(attempt: Attempt) -> Iterator[ProbeSecondReported]:
    """The seconds that are not stored yet, numbered from the probe's first start."""
    for report in attempt.reported:
        yield replace(report, second=replace(report.second, second=attempt.first_second + report.second.second))


def longest_s(request: ProbeRequest) -> float:
    """The longest duration of an attempt: a node refines a sweep near its knee, and pauses between trials."""
    refining_ms = max(step.duration_ms for step in request.steps) if request.kind is ProbeKind.KNEE else 0
    return request.seconds + MOST_REFINING * refining_ms / 1e3 + PAUSE_S * len(request.trials)


def _added(one: StepResult, other: StepResult) -> StepResult:
    elapsed_us = one.elapsed_us + other.elapsed_us
    share = one.elapsed_us / elapsed_us if elapsed_us else 0.5
    return StepResult(
        one.rate_bps,
        one.sent_bps * share + other.sent_bps * (1 - share),
        one.received_bps * share + other.received_bps * (1 - share),
        one.sent + other.sent,
        one.received + other.received,
        one.lost + other.lost,
        one.reordered + other.reordered,
        one.duplicated + other.duplicated,
        elapsed_us,
        receiver_dropped=one.receiver_dropped + other.receiver_dropped,
    )


STOP_S = 2.0
"""The wait for a report after a request to stop."""
OVERDUE_S = 30.0
LEAST_REST = timedelta(seconds=2)
MOST_GAPS = 200
