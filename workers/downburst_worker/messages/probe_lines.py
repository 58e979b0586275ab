"""The lines about probes of paths, from and to the types of probes."""

from typing import Any, Literal

from downburst.domain.probes import Probe, ProbeKind
from downburst.domain.probes.checks import MOST_BPS, MOST_REFINING, MOST_SOAK_S, MOST_STEPS
from downburst.domain.probes.results import DelaySpread, Excess, ProbeResult, ProbeSecond, StepResult
from downburst.domain.probes.signs import ProbeOver, ProbeSecondReported
from downburst.foundation.bounds import OutOfBounds, count, entries, integer, maybe, number, sentence, shown

Line = dict[str, Any]


def probe_job(probe: Probe) -> Line:
    """The job that starts a probe's present attempt."""
    request = probe.request
    return {
        "probe": probe.name,
        "site": request.site,
        "kind": request.kind.value,
        "direction": request.direction.value,
        "packet_bytes": request.packet_bytes,
        "steps": [{"rate_bps": step.rate_bps, "duration_ms": step.duration_ms} for step in request.steps],
        "seconds": request.kind is not ProbeKind.KNEE,
        "relay": request.relay,
    }


def probe_second_reported(line: Line) -> ProbeSecondReported:
    """The report of a second."""
    return ProbeSecondReported(_name(line["probe"]), _second(line))


def probe_over(line: Line) -> ProbeOver:
    """The report of a probe's end."""
    excess = line["excess"]
    result = ProbeResult(
        steps=tuple(sorted(map(_step, entries(line["steps"], most=MOST_MEASURED)), key=lambda one: one.rate_bps)),
        sender_lag_us=count(line["sender_lag_us"]),
        knee_bps=maybe(line["knee_bps"], _rate),
        knee_reason=maybe(line["knee_reason"], _text),
        losses=count(line["losses"]),
        excess=None if excess is None else tuple(map(_excess, entries(excess, most=MOST_EXCESS))),
        delay_bound_us=maybe(line.get("delay_bound_us"), count),
    )
    return ProbeOver(_name(line["probe"]), _outcome(line["outcome"]), maybe(line["reason"], _text), result)


def _second(line: Line) -> ProbeSecond:
    return ProbeSecond(
        second=integer(line["second"], least=0, most=MOST_SOAK_S),
        sent=count(line["sent"]),
        received=count(line["received"]),
        lost=count(line["lost"]),
        reordered=count(line["reordered"]),
        duplicated=count(line["duplicated"]),
        bytes=count(line["bytes"]),
        delay_us=maybe(line["delay_us"], _spread),
        jitter_us=maybe(line["jitter_us"], _jitter),
        delay_bound_us=maybe(line["delay_bound_us"], count),
        receiver_dropped=count(line["receiver_dropped"]),
    )


def _step(line: Any) -> StepResult:
    return StepResult(
        rate_bps=integer(line["rate_bps"], least=1, most=MOST_BPS),
        sent_bps=_rate(line["sent_bps"]),
        received_bps=_rate(line["received_bps"]),
        sent=count(line["sent"]),
        received=count(line["received"]),
        lost=count(line["lost"]),
        reordered=count(line["reordered"]),
        duplicated=count(line["duplicated"]),
        elapsed_us=count(line["elapsed_us"]),
        delay_us=maybe(line["delay_us"], _spread),
        jitter_us=maybe(line["jitter_us"], _jitter),
        receiver_dropped=count(line["receiver_dropped"]),
    )


def _excess(line: Any) -> Excess:
    return Excess(
        count(line["at_us"]), count(line["lost"]), count(line["excess_us"]), maybe(line["recovery_us"], count)
    )


def _spread(value: Any) -> DelaySpread:
    if not isinstance(value, dict):
        raise OutOfBounds(f"{shown(value)} are no delays")
    return DelaySpread(
        *(integer(value[name], least=-LONGEST_US, most=LONGEST_US) for name in ("min", "median", "p99", "max"))
    )


def _outcome(value: object) -> Literal["done", "stopped", "failed"]:
    if value == "done":
        return "done"
    if value == "stopped":
        return "stopped"
    if value == "failed":
        return "failed"
    raise OutOfBounds(f"{shown(value)} is no outcome of a probe")


def _name(value: object) -> str:
    if isinstance(value, str) and 1 <= len(value) <= MOST_NAME:
        return value
    raise OutOfBounds(f"{shown(value)} is not the name of a probe")


def _rate(value: object) -> float:
    found = number(value, most=float(10 * MOST_BPS))
    if found < 0:
        raise OutOfBounds(f"{shown(value)} is no rate")
    return found


def _jitter(value: object) -> float:
    return abs(number(value, most=float(LONGEST_US)))


def _text(value: object) -> str:
    return sentence(value)[:TEXT_CHARS]


MOST_NAME = 64
MOST_EXCESS = 100
MOST_MEASURED = MOST_STEPS + 2 * MOST_REFINING
"""A node measures those that were asked for, and refines a sweep near its knee."""
TEXT_CHARS = 500
LONGEST_US = 10**12
"""Eleven days; clocks of hosts may be that wrong."""
