"""The reasons of providers by kind, with one sentence for each. An unreachable provider has refused nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from downburst_circuits.nsi.words import Criteria, Fault, ServiceException


class Kind(StrEnum):
    """The kinds of problems. UNKNOWN and UNREACHABLE are no refusals: the outcome has to be looked up."""

    CAPACITY = "capacity"
    STP = "stp"
    TIME = "time"
    CERTIFICATE = "certificate"
    HOLD_EXPIRED = "hold-expired"
    DIFFERENT = "different"
    """The confirmation differs from the request."""
    STATE = "state"
    """The reservation's state does not allow the operation, or the provider does not know it."""
    OTHER = "other"
    LATE = "late"
    """Granted, and not active when it should be."""
    ENDED = "ended"
    """The provider ended it before its time, or lost it."""
    UNKNOWN = "unknown"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason, and the sentence for users."""

    kind: Kind
    sentence: str


@dataclass(frozen=True, slots=True)
class Unsent(Problem):
    """No request has left the hub: it may be sent again as soon as the way there is open, and none is looked for."""


def is_unknown(fault: Fault) -> bool:
    """True if the outcome of the request has to be looked up: an internal error, or a fault without NSI's reason."""
    return fault.exception is None or fault.exception.error_id.startswith(_INTERNAL)


def is_state(fault: Fault) -> bool:
    """True if the request came in the wrong state, or for an unknown reservation: reading the state tells."""
    return fault.exception is not None and fault.exception.error_id.startswith(_STATE)


def refusal(provider: str, exception: ServiceException, asked: Criteria | None) -> Problem:
    """The problem behind a provider's exception."""
    kind = _kind(exception)
    return Problem(kind, _sentence(kind, provider, asked) + f"; it answered: {exception.error_id} {exception.text}")


def hold_expired(provider: str) -> Problem:
    """The held reservation was not committed in time."""
    return Problem(
        Kind.HOLD_EXPIRED,
        f"provider {provider} gave up its hold before the commit arrived; order the circuit again, and check the "
        "delay to the provider if that repeats",
    )


def too_late(provider: str) -> Problem:
    """The end has passed before the provider made the reservation, so it is asked for no more."""
    return Problem(
        Kind.TIME,
        f"provider {provider} made no reservation before the order's end; order the circuit again with a window that "
        "lies ahead, and check both clocks",
    )


def different(provider: str, phrases: tuple[str, ...]) -> Problem:
    """The confirmation differs from the request."""
    return Problem(
        Kind.DIFFERENT,
        f"provider {provider} confirmed {', '.join(phrases)}, so nothing was committed; ask its operator, and check "
        "the provider's modify dialect if it was a change",
    )


def late(provider: str, event: str) -> Problem:
    """The reservation is in order and the provider does not report it active."""
    words = f"; it reported: {event}" if event else ""
    return Problem(
        Kind.LATE,
        f"provider {provider} granted the circuit and does not report it active; ask its operator{words}",
    )


def _kind(exception: ServiceException) -> Kind:
    if exception.error_id in _TIME_IDS:
        words = exception.text.lower()
        return Kind.TIME if any(word in words for word in _TIME_WORDS) else Kind.OTHER
    return next((kind for ids, kind in _KINDS.items() if exception.error_id.startswith(ids)), Kind.OTHER)


def _sentence(kind: Kind, provider: str, asked: Criteria | None) -> str:
    if kind is Kind.UNKNOWN:
        return f"provider {provider} failed to make the reservation; order it again, or ask its operator"
    refuses = f"provider {provider} refuses the reservation"
    if kind is Kind.CAPACITY:
        rate = f" {asked.capacity_mbps} Mb/s" if asked else ""
        return f"{refuses}: it has no room for{rate or ' the capacity'}; ask for less, or for another time"
    if kind is Kind.STP:
        ends = f" {asked.source} and {asked.dest}" if asked else ""
        return f"{refuses}: it can't serve the end points{ends}; check their STPs and VLANs"
    return refuses + _REMEDIES.get(kind, "")


_INTERNAL = "005"
_STATE = ("00201", "00203", "00204")
_TIME_IDS = ("00100", "00101", "00102")
_TIME_WORDS = ("time", "schedule", "begin", "end ", "past", "before")
_KINDS: Mapping[tuple[str, ...], Kind] = {
    ("00705", "00602"): Kind.CAPACITY,
    ("004", "006", "00701", "00702", "00703", "00704", "00706", "00709"): Kind.STP,
    ("002",): Kind.STATE,
    ("003",): Kind.CERTIFICATE,
    (_INTERNAL,): Kind.UNKNOWN,
}
_REMEDIES = {
    Kind.TIME: ": its begin or end; give a window that lies ahead, and check both clocks",
    Kind.CERTIFICATE: " from this hub; ask its operator to allow the hub's certificate and requester NSA",
    Kind.STATE: " in its present state; wait for a minute, then ask again",
    Kind.OTHER: "; ask its operator",
}
