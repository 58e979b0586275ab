"""The state machines of a connection: a request in, the next record out, or a refusal.

    reservation  checking ─► held ─► committing ─► start        aborting ─► start, from held, failed and timeout
                     └► failed   └► timeout
    provision    released ─► provisioning ─► provisioned ─► releasing ─► released    (after the first commit)
    lifecycle    created ─► failed | passed end time ─► terminating ─► terminated

A request is stored here as pending and acknowledged; `carrying` does it afterwards, and calls what follows.
"""

from collections.abc import Callable
from dataclasses import replace

from downburst_circuits.nsi.words import Asked, LifecycleState, Operation, ProvisionState, ReservationState
from downburst_circuits.provider_agent.record import Connection, Pending, Service, Terms
from downburst_circuits.provider_agent.refusals import ErrorId, NsiRefusal


def requested(one: Connection, asked: Asked) -> Connection:
    """The record with the request pending; raises a refusal if its state does not allow it."""
    operation = asked.operation
    assert isinstance(operation, Operation)  # noqa: S101
    if operation is not Operation.TERMINATE:
        _check_alive(one, operation)
    changed = _REQUESTED[operation](one)
    return replace(changed, pending=(*changed.pending, pending_of(asked)))


def change_requested(one: Connection, asked: Asked) -> Connection:
    """The record with other terms to be held, as the next version; raises a refusal if that is impossible now."""
    _check_alive(one, Operation.RESERVE)
    if one.committed is None or one.reservation is not ReservationState.START:
        raise _transition(one, Operation.RESERVE)
    terms = _changed(one, one.committed, asked)
    requester = one.requester if asked.reply_to is None else replace(one.requester, reply_to=asked.reply_to)
    return replace(
        one,
        requester=requester,
        asked=terms,
        reservation=ReservationState.CHECKING,
        pending=(*one.pending, pending_of(asked)),
    )


def held(one: Connection, circuit: int, service: Service, terms: Terms, until_us: int) -> Connection:
    """The calendar holds what was asked for."""
    return replace(
        one,
        circuit=circuit,
        service=service,
        asked=terms,
        held_until_us=until_us,
        reservation=ReservationState.HELD,
    )


def refused(one: Connection) -> Connection:
    """The calendar has no room."""
    return replace(one, reservation=ReservationState.FAILED, held_until_us=None)


def timed_out(one: Connection) -> Connection:
    """The hold is over without a commit."""
    return replace(one, reservation=ReservationState.TIMEOUT, held_until_us=None)


def committed(one: Connection) -> Connection:
    """What was held is reserved."""
    return replace(one, committed=one.asked, asked=None, held_until_us=None, reservation=ReservationState.START)


def fallen_back(one: Connection) -> Connection:
    """What was held is given back; the terms that were committed before stay."""
    return replace(one, asked=None, held_until_us=None, reservation=ReservationState.START)


def done(one: Connection, pending: Pending) -> Connection:
    """The record without a request that was carried out."""
    return replace(one, pending=tuple(other for other in one.pending if other != pending))


def is_over(one: Connection) -> bool:
    """True if nothing will happen to it any more."""
    return one.lifecycle is LifecycleState.TERMINATED


def _commit(one: Connection) -> Connection:
    if one.reservation is not ReservationState.HELD:
        raise _transition(one, Operation.COMMIT)
    return replace(one, reservation=ReservationState.COMMITTING)


def _abort(one: Connection) -> Connection:
    if one.reservation not in (ReservationState.HELD, ReservationState.FAILED, ReservationState.TIMEOUT):
        raise _transition(one, Operation.ABORT)
    return replace(one, reservation=ReservationState.ABORTING)


def _provision(one: Connection) -> Connection:
    if one.committed is None or one.provision is not ProvisionState.RELEASED:
        raise _transition(one, Operation.PROVISION)
    return replace(one, provision=ProvisionState.PROVISIONING)


def _release(one: Connection) -> Connection:
    if one.provision is not ProvisionState.PROVISIONED:
        raise _transition(one, Operation.RELEASE)
    return replace(one, provision=ProvisionState.RELEASING)


def _terminate(one: Connection) -> Connection:
    if one.lifecycle in (LifecycleState.TERMINATING, LifecycleState.TERMINATED):
        raise _transition(one, Operation.TERMINATE)
    return replace(one, lifecycle=LifecycleState.TERMINATING)


def _changed(one: Connection, before: Terms, asked: Asked) -> Terms:
    """The terms of the next version; those left out stay."""
    wanted = asked.criteria
    version = before.version + 1 if asked.version is None else asked.version
    if version != before.version + 1:
        raise NsiRefusal(
            ErrorId.UNSUPPORTED,
            f"version {version} was asked for and {before.version} is committed; ask for {before.version + 1}",
        )
    if wanted is None:
        return replace(before, version=version)
    for name, stp, kept in (("source", wanted.source, one.service.source), ("dest", wanted.dest, one.service.dest)):
        if stp is not None and not kept.grants(stp):
            raise NsiRefusal(
                ErrorId.UNSUPPORTED, f"the {name}STP of a reservation stays {kept}; terminate it and reserve another"
            )
    if wanted.begin_us is not None and abs(wanted.begin_us - before.begin_us) >= _SECOND_US:
        raise NsiRefusal(
            ErrorId.UNSUPPORTED, "the begin of a reservation stays as it is; terminate it and reserve another"
        )
    capacity_mbps = before.capacity_mbps if wanted.capacity_mbps is None else wanted.capacity_mbps
    end_us = before.end_us if wanted.end_us is None else wanted.end_us
    return Terms(version, capacity_mbps, before.begin_us, end_us)


def _check_alive(one: Connection, operation: Operation) -> None:
    if one.lifecycle is not LifecycleState.CREATED:
        raise _transition(one, operation)


def _transition(one: Connection, operation: Operation) -> NsiRefusal:
    return NsiRefusal(
        ErrorId.TRANSITION,
        f"{operation} is impossible while the reservation is in {one.reservation}, {one.provision} and "
        f"{one.lifecycle}; query it first",
    )


def pending_of(asked: Asked) -> Pending:
    """The request as it is kept until it is carried out."""
    assert isinstance(asked.operation, Operation)  # noqa: S101
    return Pending(asked.operation, asked.header.correlation_id, asked.reply_to)


_SECOND_US = 1_000_000
_REQUESTED: dict[Operation, Callable[[Connection], Connection]] = {
    Operation.COMMIT: _commit,
    Operation.ABORT: _abort,
    Operation.PROVISION: _provision,
    Operation.RELEASE: _release,
    Operation.TERMINATE: _terminate,
}
