"""Probes as rows of a table."""

from collections.abc import Iterator
from typing import Any

from downburst_contract.paths import probes as shapes


def step_rows(probe: shapes.Probe) -> Iterator[dict[str, Any]]:
    """A row for each measured rate, and for each flow of a trial; one without figures if there is none of them."""
    facts = probe.model_dump(include={"id", "site", "relay", "kind", "direction", "state", "reason", "requested_at"})
    facts |= {"started_at": probe.started_at, "transport": probe.transport.value}
    result = probe.result
    if result is None:
        yield facts
        return
    facts |= result.model_dump(include={"knee_bps", "congestion", "retransmits"})
    rows = [facts | step.model_dump(exclude={"delay_us"}) | _delays(step.delay_us) for step in result.steps]
    for number, trial in enumerate(result.trials or (), 1):
        rows += [facts | row for row in _flow_rows(number, trial)]
    yield from rows or [facts]


def second_row(second: shapes.ProbeSecond) -> dict[str, Any]:
    """A row."""
    return second.model_dump(exclude={"delay_us"}) | _delays(second.delay_us)


def _flow_rows(number: int, trial: shapes.ProbeTrialResult) -> Iterator[dict[str, Any]]:
    facts = trial.model_dump(include={"duration_ms", "fairness", "limited"}) | {"trial": number}
    for flow, share in zip(trial.flows, trial.shares, strict=True):
        trips = {"round_trip_min_us": flow.round_trip_us.min, "round_trip_mean_us": flow.round_trip_us.mean}
        yield facts | flow.model_dump(exclude={"round_trip_us"}) | {"share": share} | trips
    if trial.reason is not None:
        yield facts | {"trial_reason": trial.reason}


def _delays(spread: shapes.DelaySpread | None) -> dict[str, Any]:
    if spread is None:
        return {}
    return {
        "delay_min_us": spread.min,
        "delay_median_us": spread.median,
        "delay_p99_us": spread.p99,
        "delay_max_us": spread.max,
    }


_DELAYS = ("delay_min_us", "delay_median_us", "delay_p99_us", "delay_max_us", "jitter_us")
STEPS = (
    *("id", "site", "kind", "direction", "state", "reason", "requested_at", "started_at"),
    *("rate_bps", "sent_bps", "received_bps", "sent", "received", "lost", "loss", "reordered", "duplicated"),
    *("elapsed_us", *_DELAYS, "knee_bps", "transport", "congestion", "retransmits"),
    *("trial", "duration_ms", "trial_reason", "fairness", "limited", "reverse", "goodput_bps", "share"),
    *("round_trip_min_us", "round_trip_mean_us", "receiver_dropped", "relay"),
)
SECONDS = (
    *("second", "sent", "received", "lost", "reordered", "duplicated", "bytes", *_DELAYS),
    *("delay_bound_us", "receiver_dropped"),
)
