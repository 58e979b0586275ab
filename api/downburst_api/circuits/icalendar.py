"""Circuits as a calendar that programs subscribe to (RFC 5545, with the refresh interval of RFC 7986).

An event's UID is that of its circuit for good. Its SEQUENCE and DTSTAMP are those of the circuit's newest event in
the ledger, so that an unchanged circuit has the same text each time.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from downburst.domain.circuits import Circuit, CircuitEnd
from downburst.foundation.rates import rate_text
from downburst.ledger.repositories.circuits import Revision


def calendar_text(name: str, circuits: Iterable[Circuit], revisions: Mapping[int, Revision]) -> str:
    """The whole calendar; `name` is for the list of calendars in a program."""
    lines = [
        *_HEAD,
        f"NAME:{_escaped(name)}",
        f"X-WR-CALNAME:{_escaped(name)}",
        *(line for circuit in circuits for line in _event(circuit, revisions.get(circuit.number))),
        "END:VCALENDAR",
    ]
    return "".join(f"{folded}\r\n" for line in lines for folded in _folded(line))


def _event(circuit: Circuit, revision: Revision | None) -> Iterator[str]:
    made = circuit.created_at or circuit.begin
    changed = revision or Revision(0, circuit.since or made)
    yield "BEGIN:VEVENT"
    yield f"UID:circuit-{circuit.number}-{made.astimezone(UTC):%Y%m%dT%H%M%S%fZ}@downburst"
    yield f"DTSTAMP:{_utc(changed.at)}"
    yield f"LAST-MODIFIED:{_utc(changed.at)}"
    yield f"CREATED:{_utc(made)}"
    yield f"SEQUENCE:{changed.number}"
    yield f"DTSTART:{_utc(circuit.begin)}"
    yield f"DTEND:{_utc(circuit.end or circuit.begin + SHOWN_WITHOUT_END)}"
    yield f"STATUS:{_STATUS.get(circuit.shown_state, 'CONFIRMED')}"
    yield "TRANSP:TRANSPARENT"
    yield "CATEGORIES:circuit"
    yield f"SUMMARY:{_escaped(_summary(circuit))}"
    yield f"DESCRIPTION:{_escaped(_description(circuit))}"
    yield "END:VEVENT"


def _summary(circuit: Circuit) -> str:
    far = ", ".join(circuit.far_sites)
    between = f"to {far}" if circuit.near_site is None else f"from {circuit.near_site} to {far}"
    if circuit.passes:
        between = f"from {circuit.ends[0].port} to {circuit.ends[1].port}"
    return f"Circuit {circuit.number} {between}: {_rates(circuit)}"


def _description(circuit: Circuit) -> str:
    request = circuit.request
    parts = [
        f"{circuit.shown_state}: {circuit.shown_reason}" if circuit.shown_reason else circuit.shown_state.value,
        f"{_rates(circuit)} (Ethernet frames) for each site",
        *(_end(end) for end in circuit.ends),
        "" if circuit.end else "until it is cancelled",
        request.description,
        f"ticket {request.ticket}" if request.ticket else "",
        f"requested by {request.requested_by}",
    ]
    return "\n".join(part for part in parts if part)


def _end(end: CircuitEnd) -> str:
    tag = "" if end.vlan is None else f", tag {end.vlan}"
    return f"{end.site or 'hub'}: port {end.port}{tag}"


def _rates(circuit: Circuit) -> str:
    return f"{rate_text(circuit.rate_out_bps)} out, {rate_text(circuit.rate_in_bps)} in"


def _utc(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _escaped(text: str) -> str:
    """A value of type TEXT (RFC 5545, 3.3.11), without control characters."""
    if not text.isprintable():
        text = "".join(letter for letter in text if letter == "\n" or letter.isprintable())
    return text.translate(_ESCAPES)


def _folded(line: str) -> Iterator[str]:
    """A content line in pieces of at most 75 octets, continued by a space (RFC 5545, 3.1); no character is cut."""
    if len(line.encode()) <= LONGEST_OCTETS:
        yield line
        return
    piece, octets = "", 0
    for letter in line:
        size = len(letter.encode())
        if octets + size > LONGEST_OCTETS:
            yield piece
            piece, octets = " ", 1
        piece, octets = piece + letter, octets + size
    yield piece


LONGEST_OCTETS = 75
SHOWN_WITHOUT_END = timedelta(days=5 * 365)
"""Calendars have no events without an end; so long ahead a circuit may be reserved."""
_ESCAPES = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"})
_STATUS = {
    "held": "TENTATIVE",
    "requested": "TENTATIVE",
    "cancelling": "CANCELLED",
    "cancelled": "CANCELLED",
    "expired": "CANCELLED",
}
_HEAD = (
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Downburst//Circuits//EN",
    "CALSCALE:GREGORIAN",
    "REFRESH-INTERVAL;VALUE=DURATION:PT15M",
    "X-PUBLISHED-TTL:PT15M",
)
