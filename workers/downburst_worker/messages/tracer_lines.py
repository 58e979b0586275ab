"""The node's answer about the connections of a site."""

from datetime import datetime
from typing import Any

from downburst.foundation.bounds import ORIGIN_MAX_US, ORIGIN_MIN_US
from downburst.foundation.clock import from_us, to_us
from downburst.live.traced import LimitShare, Stall, TracedConnection, TracedSite, TracerQuestion, Verdict

Line = dict[str, Any]


def tracer_job(wanted: TracerQuestion) -> Line:
    """The job that asks for a site's connections."""
    return {
        "site": wanted.site,
        "from_us": to_us(wanted.since),
        "to_us": to_us(wanted.until),
        "points": wanted.points,
        "variables": list(wanted.variables),
    }


def traced_site(answer: Line) -> TracedSite:
    """Parses the answer."""
    since, until = answer["since_us"], answer["until_us"]
    return TracedSite(
        variables=tuple(answer["variables"]),
        connections=tuple(map(_connection, answer["connections"])),
        unable=answer["unable"],
        missed_ticks=answer["missed_ticks"],
        damaged=answer["damaged"],
        recorded=None if since is None or until is None else (_date(since), _date(until)),
        complete=answer["complete"],
    )


def _connection(line: Line) -> TracedConnection:
    verdict = line["verdict"]
    return TracedConnection(
        local=line["local"],
        peer=line["peer"],
        role=line["role"],
        samples=tuple(map(tuple, line["samples"])),
        verdict=None if verdict is None else _verdict(verdict),
        stalls=tuple(map(_stall, line["stalls"])),
    )


def _verdict(line: Line) -> Verdict:
    shares = tuple(LimitShare(share["limit"], share["share"]) for share in line["shares"])
    return Verdict(line["leading"], line["sentence"], line["seconds"], shares)


def _stall(line: Line) -> Stall:
    return Stall(_date(line["from_us"]), _date(line["until_us"]), line["waiting_bytes"], line["ended"])


def _date(microseconds: int) -> datetime:
    """A ring may hold stamps of a clock that was wrong: clamped to the range of dates."""
    return from_us(min(max(microseconds, ORIGIN_MIN_US), ORIGIN_MAX_US))
