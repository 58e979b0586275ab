"""Latencies in a ledger of before: a row for each minute and site, hours and days packed by site.

They are read as they are, and brought into sheets in the background, each row in the transaction that removes it.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, func, select

from downburst.ledger.latency_selection import Selection, narrowed
from downburst.ledger.partitions import Partitions
from downburst.ledger.rows import same_key
from downburst.model import LatencyKind, SketchRow, Transport
from downburst.sheet import Sheet
from downburst.sketch import LatencySketch
from downburst.sketch_codec import unpack
from downburst.tables import sketch_days, sketch_hours, sketches


class EarlierLatency:
    """The tables `sketches`, `sketch_hours` and `sketch_days`, which nobody writes any more."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def sheets(self, wanted: Selection, steps: Sequence[int]) -> Iterator[Sheet]:
        """What they hold of a range, days in one where whole days may be."""
        begin, end = wanted.since_minute, wanted.until_minute
        yield Sheet.of_rows(map(_row, self._found(sketches, "minute", begin, end, wanted)))
        first, last = (-(-begin // DAY), end // DAY) if DAY in steps else (0, 0)
        edges = [(begin, first * DAY), (last * DAY, end)] if first < last else [(begin, end)]
        for one, other in edges:
            hours = self._found(sketch_hours, "hour", one // HOUR, -(-other // HOUR), wanted) if one < other else ()
            yield Sheet.of_rows(row for hour in hours for row in _unpacked(hour, hour.hour * HOUR)).between(
                one, other
            )
        days = self._found(sketch_days, "day", first, last, wanted) if first < last else ()
        yield Sheet.of_rows(row for day in days for row in _unpacked(day, day.day * DAY))

    def feeds(self, wanted: Selection) -> set[str]:
        """The feeds of which there is anything."""
        tables = (sketches, sketch_days)
        return {
            feed
            for table in tables
            for feed in self._connection.scalars(narrowed(select(table.c.feed).distinct(), table, wanted))
        }

    def take_minutes(self, *, limit: int) -> list[SketchRow]:
        """The oldest minutes, which are removed here."""
        return [_row(row) for row in self._taken(sketches, "minute", limit)]

    def take_hours(self, *, limit: int) -> tuple[list[SketchRow], int]:
        """The minutes of some of the oldest hours, which are removed here, and how many rows they were."""
        taken = self._taken(sketch_hours, "hour", limit)
        return [row for hour in taken for row in _unpacked(hour, hour.hour * HOUR)], len(taken)

    def take_days(self, *, limit: int) -> tuple[list[SketchRow], int]:
        """The sketches of some of the oldest days, which are removed here, and how many rows they were."""
        taken = self._taken(sketch_days, "day", limit)
        return [row for day in taken for row in _unpacked(day, day.day * DAY)], len(taken)

    def forget_before(self, minute: int) -> int:
        """Deletes older rows; returns their number."""
        rows = 0
        for table, time, bound in (
            (sketches, "minute", minute),
            (sketch_hours, "hour", minute // HOUR),
            (sketch_days, "day", minute // DAY),
        ):
            Partitions(self._connection).forget_before(table.name, bound)
            rows += self._connection.execute(delete(table).where(table.c[time] < bound)).rowcount
        return rows

    def packed_bytes(self) -> int:
        """What the packed sketches take, without the keys."""
        sizes = (select(func.sum(func.length(table.c.packed))) for table in (sketch_hours, sketch_days))
        return sum(int(self._connection.scalar(size) or 0) for size in sizes)

    def _found(self, table: Table, time: str, begin: int, end: int, wanted: Selection) -> Iterator[Row[Any]]:
        query = narrowed(select(table), table, wanted).where(table.c[time] >= begin, table.c[time] < end)
        yield from self._connection.execute(query)

    def _taken(self, table: Table, time: str, limit: int) -> list[Row[Any]]:
        order = (table.c[time], table.c.feed, table.c.kind)
        rows = list(self._connection.execute(select(table).order_by(*order).limit(limit)))
        for row in rows:
            self._connection.execute(delete(table).where(same_key(table, row._asdict())))
        return rows


def _unpacked(row: Row[Any], begin: int) -> Iterator[SketchRow]:
    try:
        unpacked = unpack(row.packed)
    except ValueError as error:
        _LOG.warning("latencies of feed %s at site %s are skipped: %s", row.feed, row.site, error)
        return
    for place, sketch in unpacked.items():
        yield _named(row, begin + place, sketch)


def _named(row: Row[Any], minute: int, sketch: LatencySketch) -> SketchRow:
    return SketchRow(
        feed=row.feed,
        site=row.site,
        transport=Transport(row.transport),
        kind=LatencyKind(row.kind),
        minute=minute,
        count=sketch.count,
        sum_ms=sketch.sum_ms,
        min_ms=sketch.min_ms,
        max_ms=sketch.max_ms,
        negative=sketch.negative,
        bound_ms=sketch.bound_ms,
        buckets=sketch.buckets,
    )


def _row(row: Row[Any]) -> SketchRow:
    values = dict(row._mapping)
    return SketchRow(**values | {"transport": Transport(values["transport"]), "kind": LatencyKind(values["kind"])})


_LOG = logging.getLogger("downburst.ledger")
HOUR = 60
DAY = 24 * HOUR
