"""Which latencies are asked for."""

from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Delete, Select, Table

from downburst.domain.latency import LatencyKind
from downburst.domain.plans import Transport

Query = TypeVar("Query", "Select[Any]", Delete)


@dataclass(frozen=True, slots=True)
class Selection:
    """A range of minutes since 1970, its end left out, and what it is narrowed to; None stands for all."""

    since_minute: int = 0
    until_minute: int = 2**31 - 1
    feed: str | None = None
    site: str | None = None
    transport: Transport | None = None
    kind: LatencyKind | None = None
    feeds: tuple[str, ...] = ()
    """Some feeds, where it is not one."""


def narrowed(query: Query, table: Table, wanted: Selection) -> Query:
    """The query for what a table's own columns can tell of a selection, its time aside."""
    for name in ("feed", "site", "transport", "kind"):
        value = getattr(wanted, name)
        if value is not None and name in table.c:
            query = query.where(table.c[name] == value)
    return query.where(table.c.feed.in_(wanted.feeds)) if wanted.feeds else query
