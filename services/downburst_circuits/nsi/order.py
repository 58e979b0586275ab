"""The machine of an order: one reservation in service, and for some changes a second one before the first ends."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from downburst.domain.ordering.providers import Dialect, Provider
from downburst.foundation.errors import BadInput
from downburst_circuits.nsi import listed, replies, reservation
from downburst_circuits.nsi.record import Ask, Goal, Life, Order, Reservation, Stage
from downburst_circuits.nsi.refusals import Problem, late
from downburst_circuits.nsi.words import (
    Acknowledged,
    Confirmed,
    Criteria,
    ErrorEvent,
    ErrorReply,
    Failed,
    Fault,
    Listing,
    Message,
    Operation,
    Request,
    Reserved,
    Results,
)


class Standing(StrEnum):
    """The state of an order, for the circuit that needs it."""

    ASKING = "asking"
    """No answer so far: neither granted nor refused."""
    ORDERED = "ordered"
    """Committed; its time has not come, or the data plane is being set up."""
    LATE = "late"
    """Its time has come, and the provider does not report it active."""
    ACTIVE = "active"
    """The provider reports it active: probes may begin, and they alone prove it."""
    REPLACED = "replaced"
    """A second reservation with the changed criteria is active: probe it, then switch to it."""
    FAILED = "failed"
    """Refused, expired or ended by the provider; the problem says why."""
    ENDING = "ending"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of an order, with the problem if there is one."""

    standing: Standing
    granted: Criteria | None
    """The committed properties."""
    problem: Problem | None = None
    """Of the order if it has failed, otherwise of its last change, which left the granted properties."""


@dataclass(frozen=True, slots=True)
class Change:
    """The modifiable properties, both with their new value."""

    capacity_mbps: int
    end_us: int | None
    """None: until it is terminated."""


def new_order(
    circuit: int, provider: Provider, criteria: Criteria, description: str, ids: Callable[[], str]
) -> Order:
    """An order to be sent; raises one sentence if the criteria are impossible."""
    check_criteria(criteria)
    shown = "".join(char if char.isprintable() else " " for char in description[:DESCRIPTION_CHARS_MAX])
    return Order(circuit, provider.name, shown, criteria, _first(criteria, ids))


def changed(order: Order, wanted: Change, provider: Provider, now_us: int, ids: Callable[[], str]) -> Order:
    """The order with a change to be negotiated; raises one sentence if that is impossible now."""
    one = order.serving
    if one.goal is Goal.END or one.granted is None or one.life is not Life.PROVISIONED:
        raise BadInput(f"circuit {order.circuit} is not in service at provider {provider.name}; wait until it is")
    if one.ask is not None or order.replacing is not None:
        raise BadInput(f"circuit {order.circuit} is being changed already; wait for the provider's answer")
    if provider.dialect is not Dialect.NONE:
        criteria = replace(one.granted, capacity_mbps=wanted.capacity_mbps, end_us=wanted.end_us)
        check_criteria(criteria)
        ask = Ask(criteria, one.version + 1)
        return replace(order, serving=reservation.new_ask(one, ask), change_problem=None)
    begin_us = order.criteria.begin_us
    criteria = replace(
        order.criteria,
        capacity_mbps=wanted.capacity_mbps,
        begin_us=None if begin_us is None or begin_us <= now_us else begin_us,
        end_us=wanted.end_us,
    )
    check_criteria(criteria)
    return replace(order, criteria=criteria, replacing=_first(criteria, ids), change_problem=None)


def to_commit(order: Order) -> Order:
    """The order that was held, to be committed."""
    return replace(order, holds=False)


def is_held(order: Order) -> bool:
    """True if the provider holds it as it was asked for, or has committed it."""
    one = order.serving
    return one.life is not Life.RESERVING or (one.ask is not None and one.ask.stage is Stage.HELD)


def is_committed(order: Order) -> bool:
    """True if the provider has committed it."""
    return order.serving.life in (Life.COMMITTED, Life.PROVISIONED)


def withdrawn(order: Order) -> Order:
    """The order without its change, if that was not sent so far."""
    ask = order.serving.ask
    if ask is None or order.serving.life is Life.RESERVING or ask.stage is not Stage.WANTED or ask.correlation_id:
        return order
    return replace(order, serving=replace(order.serving, ask=None))


def switched(order: Order) -> Order:
    """The second reservation serves, and the first is removed. To be called when probes have passed."""
    if order.replacing is None or order.replacing.life is not Life.PROVISIONED:
        raise BadInput(f"circuit {order.circuit} has no second reservation in service to switch to")
    return _retire(order, order.serving, replace(order, serving=order.replacing, replacing=None))


def renewed(order: Order, criteria: Criteria, ids: Callable[[], str]) -> Order:
    """The order anew, after its reservations are gone; they are looked for in lists all the same."""
    check_criteria(criteria)
    second = () if order.replacing is None else (order.replacing,)
    former = (*order.retired, *second, order.serving)[-GONE_KEPT:]
    return Order(order.circuit, order.provider, order.description, criteria, _first(criteria, ids), retired=former)


def cancelled(order: Order) -> Order:
    """The order, to be removed at the provider."""
    return _each(order, reservation.ended)


def due(order: Order, now_us: int, ids: Callable[[], str]) -> tuple[Order, Request] | None:
    """The next request, and the record to be stored before it is sent."""
    for one in order.reservations:
        if order.holds and one.goal is Goal.SERVE and one.ask is not None and one.ask.stage is Stage.HELD:
            continue
        found = reservation.due(one, order.description, now_us, ids)
        if found is not None:
            return _with(order, found[0]), found[1]
    return None


def question(order: Order, ids: Callable[[], str]) -> Request | None:
    """A query for the words that the last list lacked. It changes nothing, so nothing need be stored before it."""
    for one in order.reservations:
        if listed.awaits_results(one):
            return Request(Operation.RESULTS, ids(), connection_id=one.connection_id)
    return None


def after_answer(order: Order, correlation_id: str, answer: Acknowledged | Fault, provider: Provider) -> Order:
    """The order after the answer to a request. Without an answer it stays as it was stored before the request."""
    return _settled(_each(order, lambda one: reservation.answered(one, correlation_id, answer, provider)))


def after_unsent(order: Order, correlation_id: str) -> Order:
    """The order after a request that has not left the hub."""
    return _each(order, lambda one: reservation.unsent(one, correlation_id))


def after_listing(order: Order, listing: Listing, asked_at_us: int, provider: Provider) -> Order:
    """The order after a list that was asked for at this moment, with no other request under way."""
    return _settled(_each(order, lambda one: listed.seen(one, listing, asked_at_us, provider)))


def after_results(order: Order, connection_id: str, found: Results | None, provider: Provider) -> Order:
    """The order after a query for stored replies of a connection; None: the provider can't answer that."""
    return _settled(
        _each(
            order,
            lambda one: replies.results(one, found, provider) if one.connection_id == connection_id else one,
        )
    )


def after_callback(order: Order, message: Message, provider: Provider) -> Order:
    """The order after a callback. Of notices, words are kept alone: the next list shows their effect."""
    header, body = message.header, message.body
    if header is None or (header.provider_nsa, header.requester_nsa) != (
        provider.provider_nsa,
        provider.requester_nsa,
    ):
        return order
    if isinstance(body, ErrorEvent) and body.connection_id == order.serving.connection_id:
        reason = f": {body.exception.error_id} {body.exception.text}" if body.exception else ""
        return replace(order, event=body.event + reason)
    if not isinstance(body, Reserved | Confirmed | Failed | ErrorReply):
        return order
    return _settled(_each(order, lambda one: replies.replied(one, header.correlation_id, body, provider)))


def verdict(order: Order, now_us: int) -> Verdict:
    """The state of the order at this moment."""
    one, standing = order.serving, _standing(order, now_us)
    if standing is Standing.LATE:
        return Verdict(standing, one.granted, late(order.provider, order.event))
    return Verdict(standing, one.granted, one.problem or one.change_problem or order.change_problem)


def is_gone(order: Order) -> bool:
    """True if nothing of it is left at the provider, as far as its last list tells."""
    return all(one.life is Life.GONE and not one.strays.connection_ids for one in order.reservations)


def in_transit(order: Order) -> bool:
    """True while the list should be asked for every few seconds."""
    return any(_in_transit(one) for one in order.reservations)


def _in_transit(one: Reservation) -> bool:
    if one.life is Life.GONE:
        return bool(one.strays.connection_ids)
    return (
        bool(one.strays.connection_ids)
        or one.goal is Goal.END
        or one.ask is not None
        or one.life is not Life.PROVISIONED
    )


def next_list_us(order: Order, now_us: int) -> int:
    """The moment of the next list: soon while something is under way, otherwise at the latest at the begin."""
    if in_transit(order) or any(_awaits_activation(one, now_us) for one in order.reservations):
        return now_us + BUSY_US
    begins = [_from_us(one) for one in order.reservations if _from_us(one) > now_us]
    return min(now_us + CALM_US, *begins) if begins else now_us + CALM_US


def _awaits_activation(one: Reservation, now_us: int) -> bool:
    """Provisioned and not reported active, which takes a provider some seconds from the begin."""
    is_due = _from_us(one) <= now_us < _from_us(one) + ACTIVATION_US
    return one.life is Life.PROVISIONED and not _is_active(one) and is_due


def _from_us(one: Reservation) -> int:
    """The moment from which it should be active."""
    return max(one.committed_at_us, (one.granted.begin_us if one.granted else None) or 0)


def _standing(order: Order, now_us: int) -> Standing:
    one = order.serving
    if one.problem is not None:
        return Standing.FAILED
    if one.goal is Goal.END:
        gone = all(other.life is Life.GONE for other in order.reservations)
        return Standing.ENDED if gone else Standing.ENDING
    if one.life is Life.RESERVING:
        return Standing.ASKING
    if order.replacing is not None and _is_active(order.replacing):
        return Standing.REPLACED
    return Standing.ACTIVE if _is_active(one) else _inactive(one, now_us)


def _inactive(one: Reservation, now_us: int) -> Standing:
    return Standing.LATE if now_us >= _from_us(one) + ACTIVATION_US else Standing.ORDERED


def _is_active(one: Reservation) -> bool:
    return one.life is Life.PROVISIONED and one.seen is not None and one.seen.active


def _settled(order: Order) -> Order:
    """A second reservation that failed leaves the first in service; those that are gone are kept for a while."""
    replacing = order.replacing
    if replacing is None or replacing.problem is None:
        return order
    failed = replace(order, replacing=None, change_problem=replacing.problem)
    return _retire(order, replacing, failed)


def _retire(order: Order, one: Reservation, rest: Order) -> Order:
    kept = [other for other in order.retired if other.life is not Life.GONE or other.strays.connection_ids]
    gone = [other for other in order.retired if other not in kept][-GONE_KEPT:]
    return replace(rest, retired=(*gone, *kept, reservation.ended(one)))


def _each(order: Order, change: Callable[[Reservation], Reservation]) -> Order:
    return replace(
        order,
        serving=change(order.serving),
        replacing=change(order.replacing) if order.replacing else None,
        retired=tuple(change(one) for one in order.retired),
    )


def _with(order: Order, changed_one: Reservation) -> Order:
    return _each(order, lambda one: changed_one if one.global_id == changed_one.global_id else one)


def _first(criteria: Criteria, ids: Callable[[], str]) -> Reservation:
    return Reservation(ids(), ask=Ask(criteria, version=1))


def check_criteria(criteria: Criteria) -> None:
    """Raises one sentence if no provider could grant them."""
    if not 1 <= criteria.capacity_mbps <= CAPACITY_MBPS_MAX:
        raise BadInput(f"a capacity of {criteria.capacity_mbps} Mb/s can't be ordered; give 1 to {CAPACITY_MBPS_MAX}")
    if criteria.begin_us is not None and criteria.end_us is not None and criteria.end_us <= criteria.begin_us:
        raise BadInput("the order ends before it begins; give a later end")
    if criteria.source.urn == criteria.dest.urn:
        raise BadInput(f"both ends of the order are {criteria.source.urn}; name two STPs")


_SECOND_US = 1_000_000
BUSY_US, CALM_US = 2 * _SECOND_US, 45 * _SECOND_US
"""Between two lists while something is under way, and at rest."""
ACTIVATION_US = 120 * _SECOND_US
"""A provider needs seconds; one whose activation failed stays provisioned and is never active."""
CAPACITY_MBPS_MAX = 10_000_000
DESCRIPTION_CHARS_MAX = 200
GONE_KEPT = 10
"""Reservations that are gone and are looked for in lists all the same: a request may have been late."""
