"""Latencies as sheets of sketches: by the minute while receipts still arrive, packed by the hour, merged over spans.

Sketches merge exactly, so a span is merged once, when its hours are packed. A query uses the longest spans that fit
into its range and shorter ones at its ends, to the minute. docs/adr/0028 has the arithmetic.

A value stays in `latency_minutes` until it is packed with those of the same ten minutes. Then it goes into
`latency_sheets`, once for each step: by the minute in its hour's sheet, and merged into the hour, the six hours, the
day and the six days that hold it.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from sqlalchemy import Connection, Table, delete, func, select

from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Transport
from downburst.ledger.repositories.latency.selection import Selection, narrowed
from downburst.ledger.storage.partitions import Partitions
from downburst.ledger.storage.rows import put, same_key
from downburst.ledger.tables.latency import latency_minutes, latency_sheets
from downburst.sketches.sheet import Sheet
from downburst.sketches.sheet_codec import Unpacking, pack_sheet

Key = dict[str, str | int]


class Latency:
    """Sketches by feed, site, transport, kind and minute."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, *rows: SketchRow) -> None:
        """Merges sketches into those of the same feed, site, transport, kind and minute."""

        def key(row: SketchRow) -> tuple[str, str, int]:
            return row.feed, row.kind.value, row.minute

        for (feed, kind, minute), some in groupby(sorted(rows, key=key), key=key):
            more = Sheet.of_rows(some)
            if len(more):
                at: Key = {"feed": feed, "kind": kind, "minute": minute}
                self._merge(latency_minutes, at, more, step=1, level=QUICKLY)

    def sheet(self, wanted: Selection | None = None, *, step_minutes: int | None = None) -> Sheet:
        """The sketches of a range of minutes, each at most one step long; None: of any length."""
        wanted = wanted or Selection()
        steps = [step for step in STEPS if step_minutes is None or step_minutes % step == 0]
        unpacking = Unpacking()
        parts = [self._young(wanted, unpacking)]
        for step, begin, end in cover(wanted.since_minute, wanted.until_minute, steps):
            found = self._packed(step, begin, end, wanted, unpacking)
            parts += found if step > 1 else (sheet.between(begin, end) for sheet in found)
        return Sheet.joined(parts)

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
        """The sketch of every minute in a range (excluding its end), filtered by the arguments, oldest first."""
        wanted = Selection(since_minute, until_minute, feed, site, transport, kind)
        return list(self.sheet(wanted, step_minutes=1).merged(1).rows())

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
        """The same values in fewer sketches, each named by its first minute. For long ranges."""
        wanted = Selection(since_minute, until_minute, feed, site, transport, kind)
        return list(self.sheet(wanted).merged(1).rows())

    def feeds(self, wanted: Selection) -> list[str]:
        """The feeds with measurements in that time; neighbouring days may be included."""
        begin, end = (minute // LONGEST * LONGEST for minute in (wanted.since_minute, wanted.until_minute))
        query = narrowed(select(latency_sheets.c.feed).distinct(), latency_sheets, wanted).where(
            latency_sheets.c.step == LONGEST, latency_sheets.c.minute >= begin, latency_sheets.c.minute <= end
        )
        young = narrowed(select(latency_minutes.c.feed).distinct(), latency_minutes, wanted)
        return sorted({*self._connection.scalars(query), *self._connection.scalars(young)})

    def roll_up(self, *, before_minute: int) -> int:
        """Packs the oldest due minutes of one feed and kind; returns the number of sketches, 0: none is due."""
        before = before_minute // TOGETHER * TOGETHER
        due = latency_minutes.c.minute < before
        columns = (latency_minutes.c.minute, latency_minutes.c.feed, latency_minutes.c.kind)
        oldest = self._connection.execute(
            select(*columns).where(due).order_by(latency_minutes.c.minute).limit(1)
        ).one_or_none()
        if oldest is None:
            return 0
        end = min(oldest.minute // HOUR * HOUR + HOUR, before)
        wanted = Selection(oldest.minute, end, oldest.feed, kind=LatencyKind(oldest.kind))
        minutes = self._young(wanted, Unpacking())
        for step in STEPS:
            self.pack(oldest.feed, oldest.kind, step, minutes)
        inside = latency_minutes.c.minute.between(oldest.minute, end - 1)
        self._connection.execute(narrowed(delete(latency_minutes), latency_minutes, wanted).where(inside))
        return len(minutes)

    def pack(self, feed: str, kind: str, step: int, minutes: Sheet) -> None:
        """Merges sketches of one feed, kind and hour into the sheet of a step that contains them."""
        span = max(step, HOUR)
        begin = int(minutes.minute[0]) // span * span
        at: Key = {"feed": feed, "kind": kind, "step": step, "minute": begin}
        self._merge(latency_sheets, at, minutes.merged(step), step=step, level=WELL)

    def forget_before(self, minute: int) -> int:
        """Removes sketches older than a minute, and longer spans once they are wholly older.

        Returns the number of rows deleted one by one; dropped partitions are not counted.
        """
        minutes = delete(latency_minutes).where(latency_minutes.c.minute < minute)
        rows = self._connection.execute(minutes).rowcount
        Partitions(self._connection).forget_before(latency_sheets.name, minute // LONGEST * LONGEST)
        for step in STEPS:
            span = max(step, HOUR)
            old = (latency_sheets.c.step == step, latency_sheets.c.minute < minute // span * span)
            rows += self._connection.execute(delete(latency_sheets).where(*old)).rowcount
        return rows

    def packed_bytes(self) -> int:
        """The size of the packed sketches, without the keys."""
        size = self._connection.scalar(select(func.sum(func.length(latency_sheets.c.packed))))
        return int(size or 0)

    def _merge(self, table: Table, at: Key, more: Sheet, *, step: int, level: int) -> None:
        before = self._connection.scalar(select(table.c.packed).where(same_key(table, at)))
        begin = int(at["minute"])
        if before is not None:
            held = Unpacking().sheet(before, feed=str(at["feed"]), kind=str(at["kind"]), begin=begin)
            more = Sheet.joined([held, more])
        packed = pack_sheet(more.merged(step), begin=begin, level=level)
        put(self._connection, table, at | {"packed": packed})

    def _young(self, wanted: Selection, unpacking: Unpacking) -> Sheet:
        inside = latency_minutes.c.minute.between(wanted.since_minute, wanted.until_minute - 1)
        query = narrowed(select(latency_minutes), latency_minutes, wanted).where(inside)
        rows = self._connection.execute(query.order_by(latency_minutes.c.minute))
        sheets = (unpacking.sheet(row.packed, feed=row.feed, kind=row.kind, begin=row.minute) for row in rows)
        # They are small, so filtering all of them in one step is faster.
        return Sheet.joined(sheets).narrowed(wanted.site, wanted.transport)

    def _packed(self, step: int, begin: int, end: int, wanted: Selection, unpacking: Unpacking) -> Iterator[Sheet]:
        table, span = latency_sheets, max(step, HOUR)
        inside = (table.c.step == step, table.c.minute >= begin // span * span, table.c.minute < end)
        for row in self._connection.execute(narrowed(select(table), table, wanted).where(*inside)):
            sheet = unpacking.sheet(row.packed, feed=row.feed, kind=row.kind, begin=row.minute)
            yield sheet.narrowed(wanted.site, wanted.transport)


def cover(begin: int, end: int, steps: Iterable[int]) -> list[tuple[int, int, int]]:
    """Step, begin and end of the longest whole spans that make up a range of minutes, in no particular order.

    The last of the steps is the longest; each divides the next, and the first is a minute.
    """
    *shorter, step = steps
    first, last = -(-begin // step) * step, end // step * step
    if begin >= end:
        return []
    if first >= last:
        return cover(begin, end, shorter)
    ends = [*cover(begin, first, shorter), *cover(last, end, shorter)] if shorter else []
    return [(step, first, last), *ends]


HOUR = 60
DAY = 24 * HOUR
STEPS = (1, HOUR, 6 * HOUR, DAY, 6 * DAY)
"""From the hour on, each is four to six times the previous one: a range has about a dozen spans at either end."""
LONGEST = STEPS[-1]
TOGETHER = 10
"""Minutes packed in one step; few are left over, and an hour's sheet is written six times."""
QUICKLY, WELL = 1, 6
"""Compression levels: for values that change each second, and for those kept for a year."""
