"""A reservation beside the provider's list, which decides about everything that has an effect there."""

from dataclasses import replace

from downburst.domain.ordering.providers import Provider
from downburst_circuits.nsi.record import Ask, Goal, Life, Reservation, Stage, Strays
from downburst_circuits.nsi.refusals import hold_expired, too_late
from downburst_circuits.nsi.reservation import (
    ACKNOWLEDGED_PAUSE_US,
    SETTLE_US,
    committed,
    confirmed,
    ended,
    given_up,
    is_past,
    lost,
    not_provisioned,
)
from downburst_circuits.nsi.words import LifecycleState, Listed, Listing, ProvisionState, ReservationState, Told


def seen(one: Reservation, listing: Listing, asked_at_us: int, provider: Provider) -> Reservation:
    """The record after a list that was asked for at this moment, after its last request was answered or lost."""
    own = [entry for entry in listing.reservations if _is_own(entry, one, provider)]
    if one.connection_id is None and _is_open(one) and own:
        first = min(own, key=lambda entry: _PREFERENCE.get(entry.states.reservation, 9))
        one = replace(one, connection_id=first.connection_id)
    entry = next((entry for entry in own if entry.connection_id == one.connection_id), None)
    others = [other for other in own if _may_carry(other) and (other is not entry or one.life is Life.GONE)]
    one = replace(one, strays=_strays(one.strays, [other.connection_id for other in others]))
    if one.life is Life.GONE:
        return one
    if entry is None:
        return _missing(one, listing, asked_at_us, provider)
    return _progress(replace(one, seen=entry.states, missing_since_us=None), entry, asked_at_us, provider)


def awaits_results(one: Reservation) -> bool:
    """True if the list shows an outcome without its words: the granted criteria, or the reason of a failure.

    Also for one that the list lacks: a provider that drops what it refused may keep the reason.
    """
    if one.ask is None or one.ask.stage is not Stage.CHECKING or one.goal is Goal.END:
        return False
    if one.missing_since_us is not None:
        return True
    return one.seen is not None and one.seen.reservation in (ReservationState.HELD, ReservationState.FAILED)


def _is_own(entry: Listed, one: Reservation, provider: Provider) -> bool:
    if entry.requester_nsa != provider.requester_nsa or entry.states.lifecycle is LifecycleState.TERMINATED:
        return False
    return entry.global_id == one.global_id or entry.connection_id == one.connection_id


def _strays(known: Strays, listed: list[str]) -> Strays:
    """In the order in which they are to be removed: each has its turn."""
    kept = [name for name in known.connection_ids if name in listed]
    return replace(known, connection_ids=(*kept, *(name for name in listed if name not in kept)))


def _may_carry(entry: Listed) -> bool:
    """False at its end, and while the provider removes it: OpenNSA lists one that never had a path so for ever."""
    return entry.states.lifecycle not in (LifecycleState.PASSED_END, LifecycleState.TERMINATING)


def _is_open(one: Reservation) -> bool:
    """True if a reserve was sent and may have made a connection that is unknown."""
    return one.life is Life.RESERVING and one.ask is not None and one.sent is not None


def _missing(one: Reservation, listing: Listing, asked_at_us: int, provider: Provider) -> Reservation:
    if any(entry.requester_nsa in (None, provider.requester_nsa) for entry in listing.unread):
        return one
    if one.connection_id is None:
        return _never_arrived(one, asked_at_us, provider)
    if one.goal is Goal.END and (one.life is not Life.RESERVING or one.seen is not None):
        return lost(one, "")
    since_us = asked_at_us if one.missing_since_us is None else one.missing_since_us
    if asked_at_us < since_us + SETTLE_US:
        return replace(one, missing_since_us=since_us)
    return lost(one, f"provider {provider.name} lists the reservation {one.connection_id} no more; ask its operator")


def _never_arrived(one: Reservation, asked_at_us: int, provider: Provider) -> Reservation:
    if one.ask is None or (one.sent is not None and asked_at_us < one.ask.asked_at_us + SETTLE_US):
        return one
    if one.goal is Goal.END:
        return lost(one, "")
    if is_past(one.ask, asked_at_us):
        return replace(lost(one, ""), problem=too_late(provider.name))
    return replace(one, ask=replace(one.ask, stage=Stage.WANTED))


def _progress(one: Reservation, entry: Listed, asked_at_us: int, provider: Provider) -> Reservation:
    if one.goal is Goal.SERVE:
        one = _negotiated(one, entry, asked_at_us, provider)
        one = _life(one, entry.states.lifecycle, provider)
    provision = entry.states.provision
    if one.goal is Goal.END:
        if not _may_carry(entry) and one.sent is not None and one.sent.tries >= END_TRIES:
            return lost(one, "")
        is_released = one.life is Life.PROVISIONED and provision is ProvisionState.RELEASED
        return replace(one, life=Life.RELEASED) if is_released else one
    if one.life is Life.COMMITTED and provision is ProvisionState.PROVISIONED:
        return replace(one, life=Life.PROVISIONED, commit_is_sure=True)
    if one.life is Life.COMMITTED and provision in (None, ProvisionState.RELEASED):
        return not_provisioned(one, provider)
    if one.life is Life.PROVISIONED and provision is ProvisionState.RELEASED:
        return replace(one, life=Life.COMMITTED)
    return one


def _life(one: Reservation, lifecycle: LifecycleState, provider: Provider) -> Reservation:
    if lifecycle is LifecycleState.PASSED_END:
        return ended(one)
    if lifecycle in (LifecycleState.FAILED, LifecycleState.TERMINATING) and not awaits_results(one):
        sentence = (
            f"provider {provider.name} ended the reservation {one.connection_id} before its time ({lifecycle}); "
            "ask its operator, and order the circuit again"
        )
        return replace(lost(one, sentence), life=one.life)
    return one


def _negotiated(one: Reservation, entry: Listed, asked_at_us: int, provider: Provider) -> Reservation:
    if one.ask is None:
        return one
    state, ask = entry.states.reservation, one.ask
    if ask.stage is Stage.GIVEN_UP:
        return replace(one, ask=None, sent=None) if state is ReservationState.START else one
    if state is ReservationState.TIMEOUT:
        return given_up(one, hold_expired(provider.name))
    if ask.stage is Stage.COMMITTING:
        return _committing(one, ask, entry, asked_at_us, provider)
    if state is ReservationState.START:
        return _fallen_back(one, ask, asked_at_us, provider)
    if ask.stage in (Stage.ASKED, Stage.WANTED):
        one = replace(one, ask=replace(ask, stage=Stage.CHECKING))
    if state is ReservationState.HELD and (told := _told(one, entry)) is not None:
        one = confirmed(one, told, provider)
    elif state is ReservationState.CHECKING and one.life is Life.RESERVING and is_past(ask, asked_at_us):
        one = given_up(one, too_late(provider.name))
    return one


def _fallen_back(one: Reservation, ask: Ask, asked_at_us: int, provider: Provider) -> Reservation:
    """Nothing is held: it never was, or is no more."""
    if ask.stage is Stage.HELD:
        return given_up(one, hold_expired(provider.name))
    if asked_at_us < ask.asked_at_us + SETTLE_US:
        return one
    if ask.stage is Stage.CHECKING or one.life is Life.RESERVING:
        return given_up(one, hold_expired(provider.name))
    return replace(one, ask=replace(ask, stage=Stage.WANTED))


def _committing(one: Reservation, ask: Ask, entry: Listed, asked_at_us: int, provider: Provider) -> Reservation:
    state = entry.states.reservation
    if state is ReservationState.HELD:
        late = one.sent is None or asked_at_us >= one.sent.at_us + ACKNOWLEDGED_PAUSE_US or not one.sent.acknowledged
        return replace(one, ask=replace(ask, stage=Stage.HELD)) if late else one
    if state is ReservationState.FAILED:
        return given_up(one, hold_expired(provider.name))
    if state is not ReservationState.START:
        return one
    versions = {told.version for told in entry.told}
    if one.life is Life.RESERVING:
        return committed(one, sure=ask.version in versions)
    if ask.version in versions:
        return committed(one, sure=True)
    return given_up(one, hold_expired(provider.name)) if versions else one


def _told(one: Reservation, entry: Listed) -> Told | None:
    """The criteria that are held, if the list shows them with their service element."""
    found = [told for told in entry.told if told.capacity_mbps is not None]
    if one.life is not Life.RESERVING and one.ask is not None:
        found = [told for told in found if told.version == one.ask.version]
    return max(found, key=lambda told: told.version, default=None)


END_TRIES = 3
"""Requests to remove a reservation that has passed its end; some providers refuse them and list it for ever."""
_PREFERENCE = {
    ReservationState.HELD: 0,
    ReservationState.CHECKING: 1,
    ReservationState.COMMITTING: 2,
    ReservationState.START: 3,
}
