"""Tables in parts by time, on PostgreSQL: old parts go as a whole, and an hour's churn stays in its own small table.

Every table keeps a part for the rest, so that no row is ever refused because its time has no part yet.
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
    """How one table is cut."""

    table: str
    column: str
    unit_us: int
    """What the column counts, in microseconds."""
    step: int
    """How many of these units a part holds."""

    @property
    def rest(self) -> str:
        """The part for rows whose time has none."""
        return f"{self.table}_rest"

    def place(self, instant: datetime) -> int:
        """Which part, counted from 1970, an instant belongs to."""
        return to_us(instant) // self.unit_us // self.step

    def name(self, place: int) -> str:
        """The table of a part, with the hour at which it begins."""
        return f"{self.table}_{from_us(place * self.step * self.unit_us):%Y%m%d_%H}"


@dataclass(frozen=True, slots=True)
class Part:
    """A table that holds the values from `begin` up to, not including, `end`."""

    name: str
    begin: int
    end: int


class Partitions:
    """The parts of the divided tables; where a database has none, there is nothing to do."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._divided = speaks_postgresql(connection)

    def keep(self, now: datetime) -> None:
        """Makes the parts of the near future."""
        for division in DIVISIONS if self._divided else ():
            made = {part.begin for part in self.parts(division)}
            here = division.place(now)
            for place in range(here, here + PARTS_AHEAD + 1):
                if place * division.step not in made:
                    self._make(division, place)

    def spread(self) -> None:
        """Gives a part to every time of which there are rows among the rest: after a migration or a restore."""
        for division in DIVISIONS if self._divided else ():
            column = f"{division.column} / {division.step}"
            query = f"SELECT DISTINCT {column} FROM {division.rest} LIMIT {MOST_PARTS}"  # noqa: S608
            made = {part.begin for part in self.parts(division)}
            for (place,) in self._connection.execute(text(query)).all():
                if place * division.step not in made:
                    self._make(division, place)

    def forget_before(self, table: str, bound: int) -> None:
        """Drops the parts of a table that hold nothing from `bound` on."""
        for division in DIVISIONS if self._divided else ():
            if division.table == table:
                for part in self.parts(division):
                    if part.end <= bound:
                        self._connection.execute(text(f"DROP TABLE {part.name}"))

    def parts(self, division: Division) -> Iterator[Part]:
        """The parts of a table but the rest, oldest first."""
        query = text(
            "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i "
            "JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass(:table) ORDER BY c.relname"
        )
        for name, bounds in self._connection.execute(query, {"table": division.table}).all():
            if found := _BOUNDS.search(bounds):
                yield Part(name, int(found[1]), int(found[2]))

    def _make(self, division: Division, place: int) -> None:
        """Makes a part beside the table, moves what the rest holds of it, and puts it in."""
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
    """The tables that are parts of others; they are no tables of their own for a backup."""
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
"""A year of weeks is 53; times beyond that stay among the rest, where they are found as well."""
_BOUNDS = re.compile(r"FROM \('?(-?\d+)'?\) TO \('?(-?\d+)'?\)")
