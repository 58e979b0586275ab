"""The tracer's answer about a site in words, for the terminal and for the page of its plots."""

from collections.abc import Iterator
from datetime import timedelta

from downburst_contract.tracer import Stall, TracedConnection, TracedSite, Verdict


def lines_of(found: TracedSite) -> Iterator[str]:
    """The whole answer: connections, then notes."""
    for connection in found.connections:
        yield from _connection(connection)
    yield from notes(found)


def notes(found: TracedSite) -> Iterator[str]:
    """The limits of the answer."""
    if found.unable:
        yield f"note: samples are missing: {found.unable}"
    if not found.connections:
        yield f"no connection of {found.site} was recorded in this period{_recorded(found)}"
    if not found.complete:
        yield "note: the period holds more samples than an answer; ask for less with --last"
    if found.damaged:
        yield f"note: {found.damaged} damaged records were passed over"
    if found.missed_ticks:
        yield f"note: {found.missed_ticks} looks were left out since the node began: its host is busy"


def ends(connection: TracedConnection) -> str:
    """The two ends and the role of a connection."""
    return f"{connection.peer} ({connection.role}), from {connection.local}"


def judgement(verdict: Verdict | None) -> tuple[str, ...]:
    """The leading limit with its remedy, then the shares of all limits that count."""
    if verdict is None:
        return ("too few samples to judge",)
    shares = ", ".join(f"{one.limit} {one.share:.0%}" for one in verdict.shares if one.share >= LEAST_SHOWN)
    return f"{verdict.leading}: {verdict.sentence}", f"of {verdict.seconds:.1f} s: {shares}"


def sentence(stall: Stall) -> str:
    """Length and beginning of a stall, and the bytes that waited."""
    lasts = "" if stall.ended else ", and it may last on"
    waiting = f"{stall.waiting_bytes} bytes waited"
    begun = f"{stall.begun_at:%H:%M:%S.%f}"
    return f"stall of {length_s(stall):.1f} s from {begun}: nothing was acknowledged, {waiting}{lasts}"


def length_s(stall: Stall) -> float:
    """The time for which it lasted, so far."""
    return (stall.until - stall.begun_at) / timedelta(seconds=1)


def _connection(connection: TracedConnection) -> Iterator[str]:
    yield ends(connection)
    for line in (*judgement(connection.verdict), *map(sentence, connection.stalls)):
        yield f"  {line}"


def _recorded(found: TracedSite) -> str:
    since = found.recorded_since
    return "; nothing is recorded yet" if since is None else f"; samples are kept since {since.isoformat()[:19]}"


LEAST_SHOWN = 0.005
