"""The terms of a circuit that requests set and change, and the sentences about them."""

import math
from dataclasses import replace
from datetime import datetime

from downburst.domain.circuits import (
    UPCOMING,
    Circuit,
    CircuitChange,
    CircuitDriver,
    CircuitOverride,
    CircuitState,
)
from downburst.foundation.errors import AlreadyThere, BadInput
from downburst.foundation.rates import rate_text
from downburst_circuits.lifecycle import check_modifiable
from downburst_circuits.requests import moment_text


def same(before: Circuit, wanted: Circuit) -> Circuit:
    """The circuit of an earlier request; refuses another one under the same name."""
    if before.request.asked_sha256 == wanted.request.asked_sha256:
        return before
    raise AlreadyThere(
        f"the request {wanted.request.request_id!r} made circuit {before.number} and differs from it now; use "
        "another request id, or modify that circuit",
        circuit=before.number,
    )


def check_hold(hold_s: float | None) -> None:
    """Refuses a hold of no time, or of more than an hour."""
    if hold_s is not None and not (math.isfinite(hold_s) and LEAST_HOLD_S <= hold_s <= MOST_HOLD_S):
        raise BadInput(
            f"a circuit can't be held for {hold_s:g} s; hold it for {LEAST_HOLD_S:g} to {MOST_HOLD_S:,.0f} s, "
            "or reserve it outright"
        )


def copied(before: Circuit, begin: datetime, *, request_id: str, by: str) -> Circuit:
    """A request for another circuit with the same properties in a window of the same length."""
    return replace(
        moved(before, begin),
        number=0,
        request=replace(before.request, request_id=request_id, asked_sha256="", requested_by=by),
        path=(),
        ends=tuple(replace(end, vlan=None, address=_declared(before, end.address)) for end in before.ends),
        state=CircuitState.REQUESTED,
        reason="",
        held_until=None,
        override=None,
    )


def moved(circuit: Circuit, begin: datetime) -> Circuit:
    """The circuit in a window of the same length with another begin."""
    return replace(circuit, begin=begin, end=None if circuit.end is None else begin + (circuit.end - circuit.begin))


def changed(circuit: Circuit, change: CircuitChange, now: datetime) -> Circuit:
    """The circuit with a change; refuses one that changes nothing, and another begin of a window that has begun."""
    burst_bytes = circuit.carriage.burst_bytes if change.burst_bytes is None else change.burst_bytes
    wanted = replace(
        circuit,
        rate_out_bps=circuit.rate_out_bps if change.rate_out_bps is None else change.rate_out_bps,
        rate_in_bps=circuit.rate_in_bps if change.rate_in_bps is None else change.rate_in_bps,
        begin=change.begin or circuit.begin,
        end=None if change.until_cancelled else change.end or circuit.end,
        carriage=replace(circuit.carriage, burst_bytes=burst_bytes),
    )
    if wanted == circuit:
        raise BadInput("nothing would change; name a rate, a begin, an end or a burst that differs")
    if wanted.begin != circuit.begin:
        _check_movable(circuit, wanted.begin, now)
    return wanted


def with_terms(now: Circuit, wanted: Circuit) -> Circuit:
    """The circuit in its present state, with the requested terms."""
    check_modifiable(now)
    if wanted.begin != now.begin and now.state not in UPCOMING:
        raise _begun(now)
    return replace(
        now,
        rate_out_bps=wanted.rate_out_bps,
        rate_in_bps=wanted.rate_in_bps,
        begin=wanted.begin,
        end=wanted.end,
        carriage=replace(now.carriage, burst_bytes=wanted.carriage.burst_bytes),
    )


def with_override(circuit: Circuit, state: CircuitState | None, reason: str, by: str) -> Circuit:
    """The circuit with another state for people than that of the probes; None gives it back to them."""
    check_modifiable(circuit)
    if state is None:
        return replace(circuit, override=None)
    if state not in OVERRIDES:
        raise BadInput(f"a circuit can't be overridden as {state}; give active or down")
    if not reason.strip():
        raise BadInput("an override needs its reason, which others see; give it with --reason")
    return replace(circuit, override=CircuitOverride(state, reason.strip(), by))


def admitted_sentence(circuit: Circuit) -> str:
    """The reservation of a new circuit, in words."""
    until = "until it is cancelled" if circuit.end is None else f"to {moment_text(circuit.end)}"
    out, back = rate_text(circuit.rate_out_bps), rate_text(circuit.rate_in_bps)
    far = ", ".join(circuit.far_sites)
    rates = f"{out} to and {back} from {far}"
    if circuit.near_site is not None or circuit.passes:
        near, far = circuit.near_site or circuit.ends[0].port, far or circuit.ends[1].port
        rates = f"{out} from {near} to {far} and {back} back"
    window = f"from {moment_text(circuit.begin)} {until}"
    if circuit.held_until is None:
        return f"{rates} are reserved {window}"
    return f"{rates} are held until {moment_text(circuit.held_until)}, for a reservation {window}"


def modified_sentence(circuit: Circuit, wanted: Circuit) -> str:
    """The difference between two terms, in words."""
    changes = []
    if wanted.rate_out_bps != circuit.rate_out_bps:
        changes.append(f"out {rate_text(circuit.rate_out_bps)} -> {rate_text(wanted.rate_out_bps)}")
    if wanted.rate_in_bps != circuit.rate_in_bps:
        changes.append(f"in {rate_text(circuit.rate_in_bps)} -> {rate_text(wanted.rate_in_bps)}")
    if wanted.begin != circuit.begin:
        changes.append(f"begin {moment_text(circuit.begin)} -> {moment_text(wanted.begin)}")
    if wanted.end != circuit.end:
        changes.append(f"end {moment_text(circuit.end)} -> {moment_text(wanted.end)}")
    before, after = circuit.carriage.burst_bytes, wanted.carriage.burst_bytes
    if after != before:
        changes.append(f"burst {before or 'by the node'} -> {after} bytes")
    return ", ".join(changes)


def override_sentence(circuit: Circuit, wanted: Circuit, reason: str, by: str) -> str:
    """The change of an override, in words."""
    if wanted.override is None:
        why = f": {reason.strip()}" if reason.strip() else ""
        return f"the override as {circuit.overridden} is cleared by {by}{why}"
    return f"overridden as {wanted.overridden} by {by}: {wanted.override.reason}"


def _check_movable(circuit: Circuit, begin: datetime, now: datetime) -> None:
    if circuit.state not in UPCOMING:
        raise _begun(circuit)
    if begin < now:
        raise BadInput(
            f"the window would begin at {moment_text(begin)} and it is {moment_text(now)}; give a begin in the future"
        )


def _begun(circuit: Circuit) -> BadInput:
    return BadInput(
        f"the window of circuit {circuit.number} has begun, so its begin stays; change its end, or clone it"
    )


def _declared(circuit: Circuit, address: str | None) -> str | None:
    return address if circuit.carriage.driver is CircuitDriver.DECLARED else None


OVERRIDES = (CircuitState.ACTIVE, CircuitState.DOWN)
LEAST_HOLD_S = 1.0
MOST_HOLD_S = 3_600.0
"""A commit is a decision of minutes; a longer hold keeps others from a rate that nobody has asked for."""
