"""What sites reported: latencies as sketches, frontiers, exceptions; loaded in batches, each once."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select

from downburst.clock import Clock
from downburst.ledger.rows import put, same_key
from downburst.model import Batch, LatencyKind, ProductException, Settled, SketchRow, Transport
from downburst.tables import batches, exceptions, settled, sketches


class Batches:
    """Hand-overs from the node."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def load(self, batch: Batch) -> bool:
        """Keeps everything in the batch, with its id, at once; a batch that was loaded before changes nothing."""
        if self._connection.scalar(select(batches.c.number).where(batches.c.batch == batch.id)) is not None:
            return False
        at = self._clock.now()
        key = self._connection.execute(insert(batches).values(batch=batch.id, loaded_at=at)).inserted_primary_key
        Latency(self._connection).add(*batch.sketches)
        Frontiers(self._connection).advance(*batch.settled, at=at)
        Exceptions(self._connection).add(*batch.exceptions)
        if key is not None:
            self._forget_before(int(key[0]) - BATCHES_REMEMBERED)
        return True

    def _forget_before(self, number: int) -> None:
        self._connection.execute(delete(batches).where(batches.c.number <= number))


class Latency:
    """Sketches by feed, site, transport, kind and minute."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, *rows: SketchRow) -> None:
        """Merges sketches into those of the same key."""
        for row in rows:
            before = self._connection.execute(select(sketches).where(same_key(sketches, asdict(row)))).one_or_none()
            merged = row if before is None else _merged(_sketch(before), row)
            put(self._connection, sketches, asdict(merged))

    def rows(
        self,
        *,
        since_minute: int = 0,
        feed: str | None = None,
        site: str | None = None,
        transport: Transport | None = None,
        kind: LatencyKind | None = None,
    ) -> list[SketchRow]:
        """Sketches from a minute on, narrowed to what is given, oldest first."""
        query = select(sketches).where(sketches.c.minute >= since_minute).order_by(sketches.c.minute)
        wanted = {"feed": feed, "site": site, "transport": transport, "kind": kind}
        for name, value in wanted.items():
            if value is not None:
                query = query.where(sketches.c[name] == value)
        return [_sketch(row) for row in self._connection.execute(query)]

    def forget_before(self, minute: int) -> int:
        """Removes sketches older than a minute; says how many."""
        return self._connection.execute(delete(sketches).where(sketches.c.minute < minute)).rowcount


class Frontiers:
    """How far each site is with each feed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[Settled]:
        """Every frontier with the counts of its epoch."""
        query = select(settled).order_by(settled.c.feed, settled.c.site, settled.c.epoch)
        return [Settled(**row._mapping) for row in self._connection.execute(query)]

    def advance(self, *reports: Settled, at: datetime) -> None:
        """Adds what sites did since the last report, which came at `at`."""
        for report in reports:
            row = asdict(report)
            before = self._connection.execute(select(settled).where(same_key(settled, row))).one_or_none()
            got_receipt = any(row[name] for name in _COUNTED)
            row["last_receipt_at"] = at if got_receipt else None
            if before is not None:
                row |= {name: row[name] + before._mapping[name] for name in _COUNTED}
                row["settled_to"] = max(report.settled_to, before.settled_to)
                row["last_receipt_at"] = row["last_receipt_at"] or before.last_receipt_at
            put(self._connection, settled, row)


class Exceptions:
    """Products that were not stored somewhere."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, *rows: ProductException) -> None:
        """Keeps exceptions; a later outcome of the same product at the same site replaces the earlier."""
        for row in rows:
            put(self._connection, exceptions, asdict(row))

    def recent(self, *, feed: str | None = None, site: str | None = None, limit: int = 100) -> list[ProductException]:
        """The newest exceptions, newest first."""
        query = select(exceptions).order_by(exceptions.c.at.desc()).limit(limit)
        if feed is not None:
            query = query.where(exceptions.c.feed == feed)
        if site is not None:
            query = query.where(exceptions.c.site == site)
        return [ProductException(**row._mapping) for row in self._connection.execute(query)]

    def count(self) -> int:
        """How many there are."""
        return self._connection.scalar(select(func.count()).select_from(exceptions)) or 0


def _merged(first: SketchRow, second: SketchRow) -> SketchRow:
    bounds = [bound for bound in (first.bound_ms, second.bound_ms) if bound is not None]
    return replace(
        second,
        count=first.count + second.count,
        sum_ms=first.sum_ms + second.sum_ms,
        min_ms=min(first.min_ms, second.min_ms),
        max_ms=max(first.max_ms, second.max_ms),
        negative=first.negative + second.negative,
        bound_ms=max(bounds, default=None),
        buckets=_summed(first.buckets, second.buckets),
    )


def _summed(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {index: first.get(index, 0) + second.get(index, 0) for index in sorted({*first, *second})}


def _sketch(row: Row[Any]) -> SketchRow:
    values = dict(row._mapping)
    return SketchRow(**values | {"transport": Transport(values["transport"]), "kind": LatencyKind(values["kind"])})


_COUNTED = ("stored", "stored_bytes", "duplicates", "rejected", "expired")
# More than a day of one batch a second; a batch file never waits longer than the node remembers to keep it.
BATCHES_REMEMBERED = 200_000
