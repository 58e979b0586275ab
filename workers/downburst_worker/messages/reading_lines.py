"""How a site's host reads the group of a feed, as the node or the site reports it."""

from typing import Any

from downburst.domain.readings import HostReading, LineReading, PriorityStanding
from downburst.foundation.bounds import count, integer, maybe


def host_reading(line: Any) -> HostReading:
    """The `reading` of a session's feed, or a group of a site's status.

    OutOfBounds, KeyError, TypeError, ValueError: it is malformed.
    """
    return HostReading(
        leg=integer(line["leg"], least=0, most=2**32 - 1),
        dropped=count(line["dropped"]),
        asked_bytes=count(line["asked_bytes"]),
        granted_bytes=count(line["granted_bytes"]),
        needed_bytes=count(line["needed_bytes"]),
        limit_bytes=maybe(line["limit_bytes"], count),
        priority=maybe(line["priority"], lambda priority: integer(priority, least=1, most=MOST_PRIORITY)),
        standing=PriorityStanding(line["standing"]),
        demotions=count(line["demotions"]),
        line=maybe(line.get("line"), _line_reading),
    )


def _line_reading(line: Any) -> LineReading:
    fields = ("arrived_bps", "offered_bps", "packets", "lost", "windows")
    return LineReading(**{field: count(line[field]) for field in fields})


MOST_PRIORITY = 99
"""The highest real-time priority of Linux (sched(7))."""
