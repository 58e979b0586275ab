"""Roll-ups give the same answers as their minutes, for any range and selection."""

import os
import random
from collections import defaultdict

import pytest

from downburst.domain.feeds import TrafficMinute
from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Transport
from downburst.ledger import Transaction
from downburst.ledger.repositories.latency.history import STEPS
from downburst.ledger.repositories.latency.selection import Selection
from downburst.ledger.tables.latency import latency_sheets
from downburst.sketches.sheet import Path, path_of
from downburst.sketches.sketch import LatencySketch
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


def check(tx: Transaction, rows: list[SketchRow], wanted: Selection, step_minutes: int | None) -> None:
    sheet = tx.measured.latency.sheet(wanted, step_minutes=step_minutes)
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


def packed(tx: Transaction, before_minute: int) -> None:
    while tx.measured.latency.roll_up(before_minute=before_minute):
        pass


def test_any_range_is_answered_as_by_its_minutes(tx: Transaction, chance: random.Random) -> None:
    rows = made_up(chance, 300)
    tx.measured.latency.add(*rows)
    packed(tx, LAST - 70)
    late = made_up(chance, 30)
    tx.measured.latency.add(*late)
    rows += late
    for at in range(30):
        if at == 15:
            packed(tx, LAST - 10)
        check(tx, rows, any_selection(chance), chance.choice([None, 1, 60, DAY]))
    assert {path_of(row).feed for row in rows} == set(tx.measured.latency.feeds(Selection()))


def test_long_spans_are_forgotten_once_all_of_them_is_older(tx: Transaction) -> None:
    tx.measured.latency.add(*(sketch_row([1.0], minute=day * DAY) for day in range(14)))
    packed(tx, 15 * DAY)
    tx.measured.latency.forget_before(7 * DAY + 30)
    left = {(row.step, row.minute) for row in tx.measured.latency._connection.execute(latency_sheets.select())}
    assert {minute for step, minute in left if step == STEPS[-1]} == {6 * DAY, 12 * DAY}
    assert {minute // DAY for step, minute in left if step == DAY} == set(range(7, 14))
    assert min(minute for step, minute in left if step == 1) == 7 * DAY


def test_arrivals_by_the_hour_are_those_by_the_minute(tx: Transaction, chance: random.Random) -> None:
    minutes = [
        TrafficMinute(chance.choice(["NGRID", "HDS"]), chance.randrange(600), 1, chance.randrange(10**6), 5)
        for _ in range(200)
    ]
    for some in (minutes[:90], minutes[90:]):
        tx.measured.traffic.add(some)
    for since in (0, 59, 60, 61, 333, 599, 700):
        sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for one in tx.measured.traffic.spans(since_minute=since):
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
        assert tx.measured.traffic.first_minute(since_minute=since) == min(
            (one.minute for one in wanted), default=None
        )
    tx.measured.traffic.forget_before(120)
    assert tx.measured.traffic.first_minute(since_minute=0) == min(one.minute for one in minutes if one.minute >= 120)
