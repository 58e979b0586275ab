"""The lines about probes of paths, from and to the types of probes."""

from typing import Any, Literal

from downburst.domain.probes import Probe, ProbeKind
from downburst.domain.probes.checks import MOST_BPS, MOST_REFINING, MOST_SOAK_S, MOST_STEPS
from downburst.domain.probes.results import DelaySpread, Excess, ProbeResult, ProbeSecond, StepResult
from downburst.domain.probes.signs import ProbeOver, ProbeSecondReported
from downburst.domain.probes.trials import (
    CONGESTION,
    MOST_FLOWS,
    MOST_REVERSE,
    MOST_TRIALS,
    FlowResult,
    RoundTrip,
    Trial,
    TrialResult,
)
from downburst.foundation.bounds import OutOfBounds, count, entries, flag, integer, maybe, number, sentence, shown

Line = dict[str, Any]


def probe_job(probe: Probe) -> Line:
    """The job that starts a probe's present attempt."""
    request = probe.request
    job = {
        "probe": probe.name,
        "site": request.site,
        "kind": request.kind.value,
        "direction": request.direction.value,
        "packet_bytes": request.packet_bytes,
        "seconds": request.kind in (ProbeKind.CBR, ProbeKind.SOAK),
        "relay": request.relay,
    }
    if request.kind is ProbeKind.STACKS:
        return job | {"rate_bps": request.highest_bps, "trials": [_trial_job(trial) for trial in request.trials]}
    steps = [{"rate_bps": step.rate_bps, "duration_ms": step.duration_ms} for step in request.steps]
    return job | {"steps": steps, "transport": request.transport.value, "congestion": request.congestion}


def probe_second_reported(line: Line) -> ProbeSecondReported:
    """The report of a second."""
    return ProbeSecondReported(_name(line["probe"]), _second(line))


def probe_over(line: Line) -> ProbeOver:
    """The report of a probe's end."""
    excess, trials = line["excess"], line.get("trials")
    result = ProbeResult(
        steps=tuple(sorted(map(_step, entries(line["steps"], most=MOST_MEASURED)), key=lambda one: one.rate_bps)),
        sender_lag_us=count(line["sender_lag_us"]),
        knee_bps=maybe(line["knee_bps"], _rate),
        knee_reason=maybe(line["knee_reason"], _text),
        losses=count(line["losses"]),
        excess=None if excess is None else tuple(map(_excess, entries(excess, most=MOST_EXCESS))),
        delay_bound_us=maybe(line.get("delay_bound_us"), count),
        congestion=maybe(line.get("congestion"), _congestion),
        retransmits=maybe(line.get("retransmits"), count),
        trials=None if trials is None else tuple(map(_trial, entries(trials, most=MOST_TRIALS))),
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
        count(line["at_us"]),
        count(line["lost"]),
        count(line["excess_us"]),
        maybe(line["recovery_us"], count),
        maybe(line.get("peak_bps"), _rate),
        maybe(line.get("backlog_bytes"), count),
        maybe(line.get("predicted_us"), count),
    )


def _trial_job(trial: Trial) -> Line:
    return {"flows": list(trial.flows), "reverse": list(trial.reverse), "duration_ms": trial.duration_ms}


def _trial(line: Any) -> TrialResult:
    return TrialResult(
        duration_ms=count(line["duration_ms"]),
        reason=maybe(line["reason"], _text),
        fairness=maybe(line["fairness"], _fairness),
        limited=flag(line["limited"]),
        flows=tuple(map(_flow, entries(line["flows"], most=MOST_FLOWS + MOST_REVERSE))),
    )


def _flow(line: Any) -> FlowResult:
    return FlowResult(
        congestion=_congestion(line["congestion"]),
        reverse=flag(line["reverse"]),
        goodput_bps=_rate(line["goodput_bps"]),
        retransmits=maybe(line["retransmits"], count),
        round_trip_us=_round_trip(line["round_trip_us"]),
    )


def _round_trip(value: Any) -> RoundTrip:
    if not isinstance(value, dict):
        raise OutOfBounds(f"{shown(value)} is no round trip")
    return RoundTrip(maybe(value["min"], count), maybe(value["mean"], count))


def _congestion(value: object) -> str:
    if isinstance(value, str) and CONGESTION.fullmatch(value):
        return value
    raise OutOfBounds(f"{shown(value)} is no congestion control")


def _fairness(value: object) -> float:
    found = number(value, most=1.0 + ROUNDING)
    if found < 0:
        raise OutOfBounds(f"{shown(value)} is no index of fairness")
    return min(found, 1.0)


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
ROUNDING = 1e-9
"""An index of equal flows may exceed 1 by the error of its sums."""
LONGEST_US = 10**12
"""Eleven days; clocks of hosts may be that wrong."""
