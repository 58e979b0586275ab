"""Checks of requested probes, and the steps of a sweep."""

from collections.abc import Sequence

from downburst.domain.probes import ProbeKind, ProbeRequest, ProbeSchedule, ProbeStep, ProbeTransport
from downburst.domain.probes.trials import (
    CONGESTION,
    LEAST_TRIAL_MS,
    MOST_CONTROLS,
    MOST_TRIAL_MS,
    MOST_TRIALS,
    Trial,
    trials_of,
)
from downburst.foundation.errors import BadInput
from downburst.foundation.rates import rate_text


def sweep(highest_bps: int, *, steps: int = 10, step_s: float = 1.0) -> tuple[ProbeStep, ...]:
    """Rates in equal ratios from a tenth of the highest one to it, as udpmon sweeps its spacing."""
    if not 2 <= steps <= MOST_STEPS:
        raise BadInput(f"a sweep has 2 to {MOST_STEPS} steps, not {steps}; choose another number")
    ratio = 10 ** (1 / (steps - 1))
    rates = [round(highest_bps / 10 * ratio**position) for position in range(steps - 1)]
    return tuple(ProbeStep(rate_bps, round(step_s * 1_000)) for rate_bps in (*rates, highest_bps))


def check_request(request: ProbeRequest) -> None:
    """Refuses a probe that a node would refuse, and one longer than its kind allows."""
    is_tcp = request.transport is ProbeTransport.TCP
    most_bytes, unit = (MOST_RECORD, "a record over TCP") if is_tcp else (MOST_PACKET, "a packet")
    if not LEAST_PACKET <= request.packet_bytes <= most_bytes:
        raise BadInput(f"{unit} has {LEAST_PACKET} to {most_bytes} bytes, not {request.packet_bytes}; choose another")
    if not 1 <= len(request.steps) <= MOST_STEPS:
        raise BadInput(f"a probe has 1 to {MOST_STEPS} steps, not {len(request.steps)}; leave some out")
    if request.kind is not ProbeKind.KNEE and len(request.steps) != 1:
        raise BadInput(f"a {request.kind} has one rate, not {len(request.steps)}; give one")
    if not 0 <= request.patience_s <= MOST_PATIENCE_S:
        raise BadInput(
            f"a probe waits up to {MOST_PATIENCE_S // 3_600} hours, not {request.patience_s:g} s; give less"
        )
    for step in request.steps:
        _check_step(step, request.kind)
    _check_transport(request)
    least = min(step.frame_bytes // (request.packet_bytes + FRAME_BYTES) for step in request.steps)
    if request.kind is ProbeKind.KNEE and least < LEAST_PACKETS:
        raise BadInput(
            f"the lowest rate of the sweep sends {least} packets, and needs {LEAST_PACKETS}; give longer steps or "
            "smaller packets"
        )
    rates = [step.rate_bps for step in request.steps]
    if rates != sorted(rates):
        raise BadInput("the rates of a sweep rise from step to step; sort them")


def stack_trials(controls: Sequence[str], *, seconds: float, reverse_traffic: bool) -> tuple[Trial, ...]:
    """The trials of these congestion controls, each of so many seconds."""
    if not 1 <= len(controls) <= MOST_CONTROLS or len(set(controls)) != len(controls):
        raise BadInput(f"1 to {MOST_CONTROLS} different congestion controls are compared; name them (--controls)")
    for control in controls:
        check_congestion(control)
    duration_ms = round(seconds * 1_000)
    if not LEAST_TRIAL_MS <= duration_ms <= MOST_TRIAL_MS:
        raise BadInput(
            f"a trial takes {LEAST_TRIAL_MS / 1e3:g} to {MOST_TRIAL_MS / 1e3:g} s, not {seconds:g} s; choose another"
        )
    return trials_of(controls, duration_ms=duration_ms, reverse_traffic=reverse_traffic)


def check_congestion(name: str) -> None:
    """Refuses what is no name of a congestion control; whether a kernel has it, only the kernel knows."""
    if not CONGESTION.fullmatch(name):
        raise BadInput(
            f"{name[:40]!r} can't be a congestion control; write a name of the kernel, such as cubic or bbr"
        )


def check_schedule(schedule: ProbeSchedule) -> None:
    """Refuses a schedule without a period or a window."""
    if not 1 <= schedule.every_h <= MOST_EVERY_H:
        raise BadInput(f"a probe repeats every 1 to {MOST_EVERY_H} hours, not {schedule.every_h}; choose another")
    hours = schedule.first_hour, schedule.end_hour
    if not (0 <= hours[0] < 24 and 0 < hours[1] <= 24) or hours[0] == hours[1]:
        raise BadInput(f"the window {hours[0]}-{hours[1]} is none; give hours of the day in UTC such as 2-5 or 22-4")


def _check_transport(request: ProbeRequest) -> None:
    is_tcp = request.transport is ProbeTransport.TCP
    if request.relay is not None and request.over_tcp:
        raise BadInput(
            f"TCP is not probed from a relay, and the relay {request.relay} was given; leave out the relay (--from), "
            "or ask for a probe over UDP"
        )
    if request.kind is ProbeKind.KNEE and is_tcp:
        raise BadInput("a sweep has no TCP, which adapts its rate to the path; leave out the transport")
    if request.congestion is not None:
        if not is_tcp or request.kind is ProbeKind.STACKS:
            raise BadInput(
                "a congestion control is one of cbr or soak over TCP; give the transport too (--transport tcp)"
            )
        check_congestion(request.congestion)
    if (request.kind is ProbeKind.STACKS) is not (1 <= len(request.trials) <= MOST_TRIALS):
        raise BadInput(f"a comparison of stacks has 1 to {MOST_TRIALS} trials, and other probes none")


def _check_step(step: ProbeStep, kind: ProbeKind) -> None:
    if not LEAST_BPS <= step.rate_bps <= MOST_BPS:
        raise BadInput(
            f"a probe sends {rate_text(LEAST_BPS)} to {rate_text(MOST_BPS)}, not {rate_text(max(step.rate_bps, 0))}; "
            "choose another rate"
        )
    most_s = LONGEST_STEP_S[kind]
    if not 100 <= step.duration_ms <= most_s * 1_000:
        raise BadInput(
            f"a step of a {kind} takes 0.1 to {most_s} s, not {step.duration_ms / 1e3:g} s; choose another"
        )


LEAST_PACKET = 64
MOST_PACKET = 1_472
MOST_RECORD = 1_448
"""The payload of one TCP segment."""
MOST_STEPS = 64
LEAST_PACKETS = 50
"""Of each rate of a sweep, so that its loss is not chance."""
FRAME_BYTES = 66
"""Headers of Ethernet, IPv4 and UDP with preamble and gap, besides the payload."""
MOST_REFINING = 10
"""Further rates that a node tries near the knee of a sweep."""
LEAST_BPS = 64_000
MOST_BPS = 100_000_000_000
MOST_STEP_S = 60
MOST_CBR_S = 3_600
MOST_SOAK_S = 7 * 86_400
MOST_STACKS_S = MOST_TRIALS * MOST_TRIAL_MS // 1_000
LONGEST_STEP_S = {
    ProbeKind.KNEE: MOST_STEP_S,
    ProbeKind.CBR: MOST_CBR_S,
    ProbeKind.SOAK: MOST_SOAK_S,
    ProbeKind.STACKS: MOST_STACKS_S,
}
MOST_PATIENCE_S = 86_400
MOST_EVERY_H = 24 * 31
