"""Probes as rows of a table."""

from collections.abc import Iterator
from typing import Any

from downburst_contract.paths import probes as shapes


def step_rows(probe: shapes.Probe) -> Iterator[dict[str, Any]]:
    """A row for each measured rate; one without figures for a probe that measured nothing."""
    facts = probe.model_dump(include={"id", "site", "relay", "kind", "direction", "state", "reason", "requested_at"})
    facts |= {"started_at": probe.started_at, "knee_bps": probe.result.knee_bps if probe.result else None}
    for step in probe.result.steps if probe.result else ():
        yield facts | step.model_dump(exclude={"delay_us"}) | _delays(step.delay_us)
    if probe.result is None or not probe.result.steps:
        yield facts


def second_row(second: shapes.ProbeSecond) -> dict[str, Any]:
    """A row."""
    return second.model_dump(exclude={"delay_us"}) | _delays(second.delay_us)


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
    *("elapsed_us", *_DELAYS, "knee_bps", "receiver_dropped", "relay"),
)
SECONDS = (
    *("second", "sent", "received", "lost", "reordered", "duplicated", "bytes", *_DELAYS),
    *("delay_bound_us", "receiver_dropped"),
)
