"""Probes, schedules and ceilings as rows."""

from dataclasses import asdict
from typing import Any

from sqlalchemy import Row

from downburst.domain.circuits import Direction
from downburst.domain.probes import (
    Probe,
    ProbeGap,
    ProbeKind,
    ProbeRequest,
    ProbeSchedule,
    ProbeState,
    ProbeStep,
    ProbeTransport,
)
from downburst.domain.probes.ceilings import CeilingSide, ProbeCeiling
from downburst.domain.probes.results import plain, result_of
from downburst.domain.probes.trials import Trial
from downburst.foundation.clock import from_us, to_us


def request_row(request: ProbeRequest) -> dict[str, Any]:
    """The columns of a request."""
    return {
        "site": request.site,
        "kind": request.kind.value,
        "direction": request.direction.value,
        "steps": [[step.rate_bps, step.duration_ms] for step in request.steps],
        "packet_bytes": request.packet_bytes,
        "patience_s": request.patience_s,
        "requested_by": request.by,
        "transport": request.transport.value,
        "congestion": request.congestion,
        "trials": [[list(trial.flows), list(trial.reverse), trial.duration_ms] for trial in request.trials],
        "relay": request.relay,
    }


def probe_row(probe: Probe) -> dict[str, Any]:
    """The changing columns of a probe."""
    return {
        "state": probe.state.value,
        "reason": probe.reason,
        "stop_by": probe.stop_by,
        "attempts": probe.attempts,
        "started_at": probe.started_at,
        "ended_at": probe.ended_at,
        "circumstances": probe.circumstances,
        "gaps": [_gap_values(gap) for gap in probe.gaps],
        "result": None if probe.result is None else plain(probe.result),
        "conclusive": probe.result is not None and probe.result.conclusive,
    }


def probe_of(row: Row[Any]) -> Probe:
    """A probe."""
    return Probe(
        row.id,
        request_of(row),
        ProbeState(row.state),
        row.requested_at,
        row.reason,
        row.started_at,
        row.ended_at,
        row.attempts,
        row.schedule,
        row.stop_by,
        row.circumstances,
        tuple(map(_gap, row.gaps)),
        None if row.result is None else result_of(row.result),
    )


def request_of(row: Row[Any]) -> ProbeRequest:
    """The request of a probe or a schedule."""
    steps = tuple(ProbeStep(*step) for step in row.steps)
    return ProbeRequest(
        row.site,
        ProbeKind(row.kind),
        Direction(row.direction),
        steps,
        row.packet_bytes,
        row.patience_s,
        row.requested_by,
        ProbeTransport(row.transport),
        row.congestion,
        tuple(Trial(tuple(flows), tuple(reverse), duration_ms) for flows, reverse, duration_ms in row.trials),
        relay=row.relay,
    )


def schedule_of(row: Row[Any]) -> ProbeSchedule:
    """A schedule."""
    return ProbeSchedule(
        row.id, request_of(row), row.every_h, row.next_at, row.first_hour, row.end_hour, row.created_at
    )


def ceiling_row(ceiling: ProbeCeiling) -> dict[str, Any]:
    """The columns of a ceiling."""
    return asdict(ceiling) | {"side": ceiling.side.value}


def ceiling_of(row: Row[Any]) -> ProbeCeiling:
    """A ceiling."""
    values = dict(row._mapping)
    return ProbeCeiling(**values | {"side": CeilingSide(values["side"])})


def _gap_values(gap: ProbeGap) -> dict[str, Any]:
    until_us = None if gap.until is None else to_us(gap.until)
    return {"since_us": to_us(gap.since), "until_us": until_us, "reason": gap.reason}


def _gap(values: dict[str, Any]) -> ProbeGap:
    until_us = values["until_us"]
    return ProbeGap(from_us(values["since_us"]), None if until_us is None else from_us(until_us), values["reason"])
