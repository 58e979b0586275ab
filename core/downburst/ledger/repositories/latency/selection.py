"""A selection of latencies."""

from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Delete, Select, Table

from downburst.domain.latency import LatencyKind
from downburst.domain.plans import Transport

Query = TypeVar("Query", "Select[Any]", Delete)


@dataclass(frozen=True, slots=True)
class Selection:
    """A range of minutes since 1970, excluding its end, with filters; None stands for all."""

    since_minute: int = 0
    until_minute: int = 2**31 - 1
    feed: str | None = None
    site: str | None = None
    transport: Transport | None = None
    kind: LatencyKind | None = None
    feeds: tuple[str, ...] = ()
    """Several feeds, instead of one."""


def narrowed(query: Query, table: Table, wanted: Selection) -> Query:
    """The query, filtered by those parts of a selection that are columns of the table, except its time."""
    for name in ("feed", "site", "transport", "kind"):
        value = getattr(wanted, name)
        if value is not None and name in table.c:
            query = query.where(table.c[name] == value)
    return query.where(table.c.feed.in_(wanted.feeds)) if wanted.feeds else query
