"""Latencies as sketches: young ones by the minute, open to change; old ones packed by the hour, merged by the day.

A sketch merges exactly, so every value lies in one place only: in `sketches` until its hour is rolled up, in
`sketch_hours` (all minutes of an hour in one row) afterwards, and there once more as part of `sketch_days`, from
which long ranges are answered. docs/adr/0008 does the arithmetic.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, delete, func, select

from downburst.ledger.partitions import Partitions
from downburst.ledger.rows import found, key_of, put, put_all, same_key
from downburst.model import LatencyKind, SketchRow, Transport
from downburst.sketch import LatencySketch
from downburst.sketch_codec import pack, unpack
from downburst.tables import sketch_days, sketch_hours, sketches

Path = tuple[str, str, str, str]
"""Feed, site, transport, kind."""


class Latency:
    """Sketches by feed, site, transport, kind and minute."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, *rows: SketchRow) -> None:
        """Merges sketches into those of the same key."""
        keyed = [(key_of(sketches, line), row, line) for row in rows for line in (asdict(row),)]
        before = found(self._connection, sketches, [line for _, _, line in keyed])
        merged = {key: _sketch_of(_row(row)) for key, row in before.items()}
        for key, row, _ in keyed:
            merged.setdefault(key, LatencySketch()).merge(row)
        lines = (asdict(_named(_path(row), row.minute, merged[key])) for key, row, _ in keyed)
        put_all(self._connection, sketches, lines)

    def rows(
        self,
        *,
        since_minute: int = 0,
        until_minute: int = 2**31 - 1,
        feed: str | None = None,
        site: str | None = None,
        transport: Transport | None = None,
        kind: LatencyKind | None = None,
    ) -> list[SketchRow]:
        """The sketch of every minute in a range (its end left out), narrowed to what is given, oldest first."""
        wanted = _given(feed, site, transport, kind)
        young = self._young(since_minute, until_minute, wanted)
        old = self._of_hours(since_minute, until_minute, wanted)
        return sorted([*old, *young], key=lambda row: row.minute)

    def young_rows(self, *, since_minute: int = 0) -> list[SketchRow]:
        """Those of the last hours, which are not rolled up yet."""
        return list(self._young(since_minute, 2**31 - 1, {}))

    def spans(
        self,
        *,
        since_minute: int = 0,
        until_minute: int = 2**31 - 1,
        feed: str | None = None,
        site: str | None = None,
        transport: Transport | None = None,
        kind: LatencyKind | None = None,
    ) -> list[SketchRow]:
        """The same values in fewer sketches: whole days as one, named by their first minute. For long ranges."""
        wanted = _given(feed, site, transport, kind)
        first_day, last_day = -(-since_minute // DAY), until_minute // DAY
        if first_day >= last_day:
            return self.rows(
                since_minute=since_minute,
                until_minute=until_minute,
                feed=feed,
                site=site,
                transport=transport,
                kind=kind,
            )
        edges = [(since_minute, first_day * DAY), (last_day * DAY, until_minute)]
        spans = [row for begin, end in edges for row in self._of_hours(begin, end, wanted)]
        spans += self._of_days(first_day, last_day, wanted)
        spans += self._young(since_minute, until_minute, wanted)
        return sorted(spans, key=lambda row: row.minute)

    def roll_up(self, *, before_minute: int) -> int:
        """Packs the oldest hour of one feed that ended before a minute; says how many sketches, 0 if none is due."""
        due = sketches.c.minute < before_minute // HOUR * HOUR
        oldest = self._connection.execute(
            select(sketches.c.minute, sketches.c.feed).where(due).order_by(sketches.c.minute).limit(1)
        ).one_or_none()
        if oldest is None:
            return 0
        hour = oldest.minute // HOUR
        inside = (sketches.c.feed == oldest.feed, *_between(sketches, "minute", hour * HOUR, (hour + 1) * HOUR))
        rows = [_row(row) for row in self._connection.execute(select(sketches).where(*inside))]
        for path, minutes in _by_path(rows).items():
            self._pack(sketch_hours, path, hour, {minute - hour * HOUR: one for minute, one in minutes.items()})
            whole = LatencySketch()
            for one in minutes.values():
                whole.merge(one)
            self._pack(sketch_days, path, hour * HOUR // DAY, {0: whole})
        self._connection.execute(delete(sketches).where(*inside))
        return len(rows)

    def forget_before(self, minute: int) -> int:
        """Removes sketches older than a minute (packed ones once their hour or day is).

        Says how many rows went one by one, parts of tables that went as a whole aside.
        """
        rows = 0
        for table, bound in ((sketches, minute), (sketch_hours, minute // HOUR), (sketch_days, minute // DAY)):
            Partitions(self._connection).forget_before(table.name, bound)
            rows += self._connection.execute(delete(table).where(table.c[_time(table)] < bound)).rowcount
        return rows

    def packed_bytes(self) -> int:
        """What the packed sketches take, without the keys."""
        sizes = (select(func.sum(func.length(table.c.packed))) for table in (sketch_hours, sketch_days))
        return sum(int(self._connection.scalar(size) or 0) for size in sizes)

    def _pack(self, table: Table, path: Path, at: int, more: Mapping[int, LatencySketch]) -> None:
        key = {"feed": path[0], "site": path[1], "transport": path[2], "kind": path[3], _time(table): at}
        before = self._connection.scalar(select(table.c.packed).where(same_key(table, key)))
        merged = {} if before is None else unpack(before)
        for place, sketch in more.items():
            merged.setdefault(place, LatencySketch()).merge(sketch)
        put(self._connection, table, key | {"packed": pack(merged)})

    def _young(self, begin: int, end: int, wanted: Mapping[str, str]) -> Iterator[SketchRow]:
        query = select(sketches).where(*_between(sketches, "minute", begin, end)).order_by(sketches.c.minute)
        for row in self._connection.execute(_narrowed(query, sketches, wanted)):
            yield _row(row)

    def _of_hours(self, begin: int, end: int, wanted: Mapping[str, str]) -> Iterator[SketchRow]:
        if begin >= end:
            return
        query = select(sketch_hours).where(*_between(sketch_hours, "hour", begin // HOUR, -(-end // HOUR)))
        for row in self._connection.execute(_narrowed(query, sketch_hours, wanted)):
            for place, sketch in unpack(row.packed).items():
                minute = row.hour * HOUR + place
                if begin <= minute < end:
                    yield _named((row.feed, row.site, row.transport, row.kind), minute, sketch)

    def _of_days(self, first: int, last: int, wanted: Mapping[str, str]) -> Iterator[SketchRow]:
        query = select(sketch_days).where(*_between(sketch_days, "day", first, last))
        for row in self._connection.execute(_narrowed(query, sketch_days, wanted)):
            for sketch in unpack(row.packed).values():
                yield _named((row.feed, row.site, row.transport, row.kind), row.day * DAY, sketch)


def _between(table: Table, column: str, begin: int, end: int) -> tuple[Any, Any]:
    return table.c[column] >= begin, table.c[column] < end


def _narrowed(query: "Select[Any]", table: Table, wanted: Mapping[str, str]) -> "Select[Any]":
    return query.where(*(table.c[name] == value for name, value in wanted.items()))


def _given(
    feed: str | None, site: str | None, transport: Transport | None, kind: LatencyKind | None
) -> dict[str, str]:
    wanted = {"feed": feed, "site": site, "transport": transport, "kind": kind}
    return {name: value for name, value in wanted.items() if value is not None}


def _by_path(rows: Iterable[SketchRow]) -> dict[Path, dict[int, LatencySketch]]:
    paths: defaultdict[Path, dict[int, LatencySketch]] = defaultdict(dict)
    for row in rows:
        paths[_path(row)][row.minute] = _sketch_of(row)
    return paths


def _path(row: SketchRow) -> Path:
    return row.feed, row.site, row.transport.value, row.kind.value


def _sketch_of(row: SketchRow) -> LatencySketch:
    return LatencySketch.of_rows([row])


def _named(path: Path, minute: int, sketch: LatencySketch) -> SketchRow:
    feed, site, transport, kind = path
    return SketchRow(
        feed=feed,
        site=site,
        transport=Transport(transport),
        kind=LatencyKind(kind),
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


def _time(table: Table) -> str:
    return {sketches: "minute", sketch_hours: "hour", sketch_days: "day"}[table]


HOUR = 60
DAY = 24 * HOUR
