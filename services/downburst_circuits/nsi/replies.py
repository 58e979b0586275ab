"""Replies to a reservation's requests, by callback or from the provider's store of results.

They count only with the correlation id of a request of ours, and with its connection.
"""

from dataclasses import replace

from downburst.domain.ordering.providers import Provider
from downburst_circuits.nsi.record import Goal, Life, Reservation, Stage
from downburst_circuits.nsi.refusals import Kind, Problem, refusal
from downburst_circuits.nsi.reservation import answered, committed, confirmed, given_up
from downburst_circuits.nsi.words import (
    Confirmed,
    ErrorReply,
    Failed,
    Fault,
    Operation,
    Reply,
    ReservationState,
    Reserved,
    Results,
)


def replied(one: Reservation, correlation_id: str, reply: Reply, provider: Provider) -> Reservation:
    """The record after a reply; one that belongs to no request of ours changes nothing."""
    if isinstance(reply, ErrorReply):
        return answered(one, correlation_id, Fault("", reply.exception), provider)
    if one.connection_id is not None and reply.connection_id != one.connection_id:
        return one
    if isinstance(reply, Reserved) or (isinstance(reply, Failed) and reply.operation is Operation.RESERVE):
        return _negotiated(one, correlation_id, reply, provider)
    sent = one.sent
    if sent is None or (sent.correlation_id, sent.operation) != (correlation_id, reply.operation):
        return one
    return _failed(one, reply, provider) if isinstance(reply, Failed) else _confirmed(one, reply)


def results(one: Reservation, found: Results | None, provider: Provider) -> Reservation:
    """The record after the stored replies; None: the provider has no such store."""
    for result in found.results if found else ():
        one = replied(one, result.correlation_id, result.reply, provider)
    state = one.seen.reservation if one.seen else None
    is_open = one.ask is not None and one.ask.stage is Stage.CHECKING and one.goal is Goal.SERVE
    if not is_open or state is not ReservationState.FAILED:
        return one
    sentence = f"provider {provider.name} refuses the reservation without a reason; ask its operator"
    return given_up(one, Problem(Kind.OTHER, sentence))


def _negotiated(
    one: Reservation, correlation_id: str, reply: Reserved | Confirmed | Failed, provider: Provider
) -> Reservation:
    ask = one.ask
    if ask is None or ask.correlation_id != correlation_id or ask.stage not in (Stage.ASKED, Stage.CHECKING):
        return one
    one = replace(one, connection_id=reply.connection_id)
    if isinstance(reply, Reserved):
        return confirmed(one, reply.told, provider)
    if isinstance(reply, Failed):
        return given_up(one, refusal(provider.name, reply.exception, ask.criteria))
    return one


def _confirmed(one: Reservation, reply: Confirmed) -> Reservation:
    if reply.operation is Operation.COMMIT and one.ask is not None and one.ask.stage is Stage.COMMITTING:
        return committed(one, sure=True)
    if reply.operation is Operation.PROVISION and one.life is Life.COMMITTED:
        return replace(one, life=Life.PROVISIONED, commit_is_sure=True)
    if reply.operation is Operation.RELEASE and one.life is Life.PROVISIONED and one.goal is Goal.END:
        return replace(one, life=Life.RELEASED)
    return one


def _failed(one: Reservation, reply: Failed, provider: Provider) -> Reservation:
    if reply.operation in (Operation.COMMIT, Operation.PROVISION):
        return given_up(one, refusal(provider.name, reply.exception, one.granted))
    return one
