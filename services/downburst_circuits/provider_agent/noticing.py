"""The differences between a circuit and what its requester knows: notifications, and states that follow."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from downburst.domain.circuits import FINISHED, Circuit, CircuitState
from downburst_circuits.nsi.words import (
    DataPlaneChanged,
    ErrorEvent,
    HoldExpired,
    LifecycleState,
    Notice,
    ProvisionState,
    ReservationState,
)
from downburst_circuits.provider_agent.record import Connection
from downburst_circuits.provider_agent.refusals import ErrorId, NsiRefusal


@dataclass(frozen=True, slots=True)
class Noticed:
    """A change of a connection, with its notification if there is one."""

    update: Callable[[Connection], Connection]
    notice: Notice | None = None


def noticed(one: Connection, circuit: Circuit | None, nsa: str, now_us: int) -> Iterator[Noticed]:
    """The changes that follow from the present state of a circuit."""
    if circuit is not None and one.committed is not None:
        yield from _plane(one, circuit)
        yield from _problem(one, circuit, nsa)
        yield from _end(one, circuit, nsa)
    if _is_left_behind(one, circuit, now_us):
        yield Noticed(terminated)


def expired(one: Connection, hold_s: int) -> HoldExpired:
    """The hold was not committed in time."""
    return HoldExpired(one.connection_id, hold_s)


def terminated(one: Connection) -> Connection:
    """Nothing is left of it."""
    return replace(
        one,
        lifecycle=LifecycleState.TERMINATED,
        provision=ProvisionState.RELEASED,
        plane=replace(one.plane, active=False),
        pending=(),
        held_until_us=None,
    )


def with_provision(one: Connection, state: ProvisionState) -> Connection:
    """The record after a provision or release."""
    return replace(one, provision=state)


def _plane(one: Connection, circuit: Circuit) -> Iterator[Noticed]:
    is_active = circuit.usable_state in _ACTIVE
    version = one.committed.version if one.committed else 0
    if is_active != one.plane.active or (is_active and version != one.plane.version):
        plane = replace(one.plane, active=is_active, version=version)
        yield Noticed(lambda now: replace(now, plane=plane), DataPlaneChanged(one.connection_id, is_active, version))


def _problem(one: Connection, circuit: Circuit, nsa: str) -> Iterator[Noticed]:
    """An event for each new failure; none while it is set up or well."""
    if circuit.state in _ACTIVE and one.plane.problem:
        yield Noticed(lambda now: replace(now, plane=replace(now.plane, problem="")))
    if circuit.state not in _BROKEN or circuit.reason == one.plane.problem:
        return
    event = "dataplaneError" if circuit.state is CircuitState.DOWN or one.plane.active else "activateFailed"
    reason = circuit.reason
    yield Noticed(lambda now: replace(now, plane=replace(now.plane, problem=reason)), _event(one, event, reason, nsa))


def _end(one: Connection, circuit: Circuit, nsa: str) -> Iterator[Noticed]:
    if one.lifecycle is not LifecycleState.CREATED:
        return
    if circuit.state in (CircuitState.ENDING, CircuitState.ENDED):
        yield Noticed(lambda now: replace(now, lifecycle=LifecycleState.PASSED_END))
    elif circuit.state in (CircuitState.CANCELLING, CircuitState.CANCELLED):
        reason = circuit.reason or "the circuit was cancelled"
        yield Noticed(
            lambda now: replace(now, lifecycle=LifecycleState.FAILED), _event(one, "forcedEnd", reason, nsa)
        )


def _event(one: Connection, event: str, reason: str, nsa: str) -> ErrorEvent:
    exception = NsiRefusal(ErrorId.INTERNAL, reason or event).exception(nsa, one.connection_id)
    return ErrorEvent(one.connection_id, event, exception)


def _is_left_behind(one: Connection, circuit: Circuit | None, now_us: int) -> bool:
    """True for a connection that holds nothing and that its requester has not terminated for a long time."""
    if one.pending or now_us < one.changed_us + LEFT_BEHIND_US:
        return False
    is_empty = circuit is None or circuit.state in FINISHED
    return is_empty and one.reservation is not ReservationState.CHECKING


LEFT_BEHIND_US = 24 * 3_600 * 1_000_000
_ACTIVE = (CircuitState.ACTIVE, CircuitState.DEGRADED)
_BROKEN = (CircuitState.FAILED, CircuitState.DOWN)
