"""Roll-ups answer what their minutes would, for any range and selection; also while old tables are brought over."""

import os
import random
from collections import defaultdict
from dataclasses import asdict

import pytest
from sqlalchemy import insert

from downburst.ledger import Book, Ledger
from downburst.ledger.latency import STEPS
from downburst.ledger.latency_selection import Selection
from downburst.model import LatencyKind, SketchRow, TrafficMinute, Transport
from downburst.sheet import Path, path_of
from downburst.sketch import LatencySketch
from downburst.sketch_codec import pack
from downburst.tables import latency_sheets, sketch_days, sketch_hours, sketches
from factories import sketch_row

DAY = 1440
LAST = 15 * DAY + 777
"""More than two of the longest spans, and an hour that is cut."""


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("DOWNBURST_SEED", random.randrange(2**32)))
    print(f"again: DOWNBURST_SEED={seed} pytest tests/contract/test_ledger_latency.py")
    return random.Random(seed)


def made_up(chance: random.Random, number: int, *, first: int = 0, last: int = LAST) -> list[SketchRow]:
    """Rows of different minutes and paths, more of them near the end."""
    rows = {}
    for _ in range(number):
        minute = chance.choice([chance.randrange(first, last), chance.randrange(max(first, last - 200), last)])
        row = sketch_row(
            [
                round(chance.lognormvariate(3, 2), 3) * chance.choice([1, 1, 1, -1])
                for _ in range(chance.randrange(1, 5))
            ],
            feed=chance.choice(["NGRID", "HDS"]),
            site=chance.choice(["a.edu", "b.edu", "c.edu"]),
            transport=chance.choice([Transport.UNICAST, Transport.MULTICAST]),
            kind=chance.choice([LatencyKind.DISTRIBUTION, LatencyKind.QUEUEING]),
            minute=minute,
        )
        rows[(*path_of(row), minute)] = row
    return list(rows.values())


def expected(rows: list[SketchRow], wanted: Selection) -> dict[Path, LatencySketch]:
    found: defaultdict[Path, LatencySketch] = defaultdict(LatencySketch)
    for row in rows:
        narrowing = ((wanted.feed, row.feed), (wanted.site, row.site), (wanted.transport, row.transport))
        inside = wanted.since_minute <= row.minute < wanted.until_minute
        if inside and all(one in (None, it) for one, it in (*narrowing, (wanted.kind, row.kind))):
            found[path_of(row)].merge(row)
    return dict(found)


def check(book: Book, rows: list[SketchRow], wanted: Selection, step_minutes: int | None) -> None:
    sheet = book.latency.sheet(wanted, step_minutes=step_minutes)
    whole = {path_of(row): told(row) for row in sheet.merged(2**31).rows()}
    assert whole == {path: told(sketch) for path, sketch in expected(rows, wanted).items()}, wanted
    steps, merged = sheet.by_step(step_minutes or DAY)
    if step_minutes is not None:
        counts: defaultdict[int, int] = defaultdict(int)
        for row in rows:
            if path_of(row) in expected([row], wanted):
                counts[row.minute // step_minutes] += row.count
        assert dict(zip(steps.tolist(), merged.count.tolist(), strict=True)) == counts, (wanted, step_minutes)


def told(sketch: LatencySketch | SketchRow) -> tuple[object, ...]:
    plain = (sketch.count, sketch.min_ms, sketch.max_ms, sketch.negative, sketch.bound_ms, dict(sketch.buckets))
    return (*plain, round(sketch.sum_ms, 3))


def any_selection(chance: random.Random) -> Selection:
    ends = sorted(chance.choice([chance.randrange(LAST), chance.randrange(16) * DAY]) for _ in range(2))
    return Selection(
        ends[0],
        chance.choice([ends[1], 2**31 - 1]),
        chance.choice([None, "NGRID", "HDS"]),
        chance.choice([None, None, "a.edu"]),
        chance.choice([None, None, Transport.MULTICAST]),
        chance.choice([None, LatencyKind.DISTRIBUTION]),
    )


def packed(book: Book, before_minute: int) -> None:
    while book.latency.roll_up(before_minute=before_minute):
        pass


def test_any_range_is_answered_as_by_its_minutes(book: Book, chance: random.Random) -> None:
    rows = made_up(chance, 300)
    book.latency.add(*rows)
    packed(book, LAST - 70)
    late = made_up(chance, 30)
    book.latency.add(*late)
    rows += late
    for at in range(30):
        if at == 15:
            packed(book, LAST - 10)
        check(book, rows, any_selection(chance), chance.choice([None, 1, 60, DAY]))
    assert {path_of(row).feed for row in rows} == set(book.latency.feeds(Selection()))


def test_rows_of_before_are_read_where_they_lie_and_brought_over(ledger: Ledger, chance: random.Random) -> None:
    rows = made_up(chance, 150)
    with ledger.transaction() as book:
        lay_down_as_before(book, rows, young_from=LAST - 200)
        for _ in range(6):
            check(book, rows, any_selection(chance), chance.choice([None, 1, 60, DAY]))
    fresh = made_up(chance, 30, first=LAST - 60)
    with ledger.transaction() as book:
        book.latency.add(*fresh)
    rows += fresh
    bites = 0
    moved = True
    while moved:
        with ledger.transaction() as book:
            moved = book.latency.take_over(limit=20) > 0
            bites += moved
            packed(book, LAST - 180)
            check(book, rows, any_selection(chance), chance.choice([None, 1, 60, DAY]))
    assert bites > 5
    with ledger.transaction() as book:
        for table in (sketches, sketch_hours, sketch_days):
            assert book.latency._connection.execute(table.select()).first() is None
        check(book, rows, Selection(), None)
        packed(book, LAST + 60)
        check(book, rows, Selection(), 1)


def lay_down_as_before(book: Book, rows: list[SketchRow], *, young_from: int) -> None:
    """As the release before wrote them: young minutes in rows, older ones packed by hour and merged by day."""
    hours: defaultdict[tuple[object, ...], dict[int, LatencySketch]] = defaultdict(dict)
    days: defaultdict[tuple[object, ...], LatencySketch] = defaultdict(LatencySketch)
    connection = book.latency._connection
    for row in rows:
        if row.minute >= young_from:
            connection.execute(insert(sketches).values(asdict(row)))
            continue
        hours[(*path_of(row), row.minute // 60)][row.minute % 60] = LatencySketch.of_rows([row])
        days[(*path_of(row), row.minute // DAY)].merge(row)
    names = ("feed", "site", "transport", "kind")
    for key, minutes in hours.items():
        values = dict(zip((*names, "hour"), key, strict=True))
        connection.execute(insert(sketch_hours).values(packed=pack(minutes), **values))
    for key, day in days.items():
        values = dict(zip((*names, "day"), key, strict=True))
        connection.execute(insert(sketch_days).values(packed=pack({0: day}), **values))


def test_what_is_damaged_is_passed_over_when_it_is_brought_over(book: Book) -> None:
    lay_down_as_before(book, [sketch_row([1.0], minute=5), sketch_row([2.0], minute=65)], young_from=10_000)
    spoilt = sketch_hours.update().where(sketch_hours.c.hour == 0).values(packed=b"spoilt")
    book.latency._connection.execute(spoilt)
    while book.latency.take_over():
        pass
    assert [row.minute for row in book.latency.rows()] == [65]


def test_long_spans_are_forgotten_once_all_of_them_is_older(book: Book) -> None:
    book.latency.add(*(sketch_row([1.0], minute=day * DAY) for day in range(14)))
    packed(book, 15 * DAY)
    book.latency.forget_before(7 * DAY + 30)
    left = {(row.step, row.minute) for row in book.latency._connection.execute(latency_sheets.select())}
    assert {minute for step, minute in left if step == STEPS[-1]} == {6 * DAY, 12 * DAY}
    assert {minute // DAY for step, minute in left if step == DAY} == set(range(7, 14))
    assert min(minute for step, minute in left if step == 1) == 7 * DAY


def test_arrivals_by_the_hour_are_those_by_the_minute(book: Book, chance: random.Random) -> None:
    minutes = [
        TrafficMinute(chance.choice(["NGRID", "HDS"]), chance.randrange(600), 1, chance.randrange(10**6), 5)
        for _ in range(200)
    ]
    for some in (minutes[:90], minutes[90:]):
        book.traffic.add(some)
    for since in (0, 59, 60, 61, 333, 599, 700):
        sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for one in book.traffic.spans(since_minute=since):
            sums[one.feed][0] += one.products
            sums[one.feed][1] += one.bytes
        wanted = [one for one in minutes if one.minute >= since]
        assert sums == {
            feed: [
                sum(one.products for one in wanted if one.feed == feed),
                sum(one.bytes for one in wanted if one.feed == feed),
            ]
            for feed in {one.feed for one in wanted}
        }
        assert book.traffic.first_minute(since_minute=since) == min((one.minute for one in wanted), default=None)
    book.traffic.forget_before(120)
    assert book.traffic.first_minute(since_minute=0) == min(one.minute for one in minutes if one.minute >= 120)
