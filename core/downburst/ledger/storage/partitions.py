"""Tables partitioned by time, on PostgreSQL: old parts are dropped whole, and an hour's churn stays in its own table.

Every table has a default part, so that a row is never refused because its time has no part yet.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from downburst.foundation.clock import from_us, to_us
from downburst.ledger.storage.databases import speaks_postgresql


@dataclass(frozen=True, slots=True)
class Division:
    """The division of one table."""

    table: str
    column: str
    unit_us: int
    """The unit of the column, in microseconds."""
    step: int
    """The number of units in a part."""

    @property
    def rest(self) -> str:
        """The default part, for rows outside all other parts."""
        return f"{self.table}_rest"

    def place(self, instant: datetime) -> int:
        """The number of the part, counted from 1970, to which an instant belongs."""
        return to_us(instant) // self.unit_us // self.step

    def name(self, place: int) -> str:
        """The table of a part, named after its first hour."""
        return f"{self.table}_{from_us(place * self.step * self.unit_us):%Y%m%d_%H}"


@dataclass(frozen=True, slots=True)
class Part:
    """A table of the values from `begin` to `end`, exclusive."""

    name: str
    begin: int
    end: int


class Partitions:
    """The parts of the divided tables; a no-op on databases without parts."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._divided = speaks_postgresql(connection)

    def keep(self, now: datetime) -> None:
        """Creates the parts of the near future."""
        for division in DIVISIONS if self._divided else ():
            made = {part.begin for part in self.parts(division)}
            here = division.place(now)
            for place in range(here, here + PARTS_AHEAD + 1):
                if place * division.step not in made:
                    self._make(division, place)

    def spread(self) -> None:
        """Creates the missing parts for the rows in the default part: after a migration or a restore."""
        for division in DIVISIONS if self._divided else ():
            column = f"{division.column} / {division.step}"
            query = f"SELECT DISTINCT {column} FROM {division.rest} LIMIT {MOST_PARTS}"  # noqa: S608
            made = {part.begin for part in self.parts(division)}
            for (place,) in self._connection.execute(text(query)).all():
                if place * division.step not in made:
                    self._make(division, place)

    def forget_before(self, table: str, bound: int) -> None:
        """Drops the parts of a table that end before `bound`."""
        for division in DIVISIONS if self._divided else ():
            if division.table == table:
                for part in self.parts(division):
                    if part.end <= bound:
                        self._connection.execute(text(f"DROP TABLE {part.name}"))

    def parts(self, division: Division) -> Iterator[Part]:
        """The parts of a table except the default one, oldest first."""
        query = text(
            "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i "
            "JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass(:table) ORDER BY c.relname"
        )
        for name, bounds in self._connection.execute(query, {"table": division.table}).all():
            if found := _BOUNDS.search(bounds):
                yield Part(name, int(found[1]), int(found[2]))

    def _make(self, division: Division, place: int) -> None:
        """Creates a part beside the table, moves its rows out of the default part, and attaches it."""
        name, table, column = division.name(place), division.table, division.column
        begin, end = place * division.step, (place + 1) * division.step
        within = f"{column} >= {begin} AND {column} < {end}"
        for statement in (
            f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING STORAGE)",
            f"WITH moved AS (DELETE FROM {division.rest} WHERE {within} RETURNING *) "  # noqa: S608
            f"INSERT INTO {name} SELECT * FROM moved",
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({begin}) TO ({end})",
        ):
            self._connection.execute(text(statement))


def parts_in(connection: Connection) -> set[str]:
    """The tables that are parts of others; a backup does not list them separately."""
    if not speaks_postgresql(connection):
        return set()
    return set(connection.scalars(text("SELECT relname FROM pg_class WHERE relispartition")))


_MINUTE_US = 60_000_000
DIVISIONS = (
    Division("latency_sheets", "minute", _MINUTE_US, step=28 * 24 * 60),
    Division("exceptions", "at", 1, step=7 * 24 * 60 * _MINUTE_US),
)
PARTS_AHEAD = 2
MOST_PARTS = 1_000
"""A year of weeks is 53; rows of further times stay in the default part, where queries find them too."""
_BOUNDS = re.compile(r"FROM \('?(-?\d+)'?\) TO \('?(-?\d+)'?\)")
