"""Sheets against sketches merged one by one: the same counts, extremes and quantiles, whatever is in them."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Transport
from downburst.ledger.repositories.latency.history import STEPS, cover
from downburst.sketches.sheet import Sheet, bucket_of_code, code_of, path_of
from downburst.sketches.sheet_codec import Unpacking, pack_sheet
from downburst.sketches.sketch import LatencySketch, bucket_of, value_of
from factories import sketch_row

MILLISECONDS = some.one_of(
    some.integers(-5_000_000, 5_000_000_000).map(lambda us: us / 1000),
    some.sampled_from([0.0, 0.0004, -0.0004, 1.0, -1.0, 0.001]),
).map(lambda value: round(value * 1000) / 1000)
ROWS = some.lists(
    some.builds(
        sketch_row,
        some.lists(MILLISECONDS, min_size=1, max_size=20),
        site=some.sampled_from(["a.edu", "b.edu", "ü.edu"]),
        minute=some.integers(0, 200),
        transport=some.sampled_from(list(Transport)),
    ),
    max_size=12,
)
BOUNDLESS = some.booleans()


def merged_one_by_one(rows: list[SketchRow], step: int) -> dict[tuple[object, ...], LatencySketch]:
    found: defaultdict[tuple[object, ...], LatencySketch] = defaultdict(LatencySketch)
    for row in rows:
        found[(*path_of(row), row.minute // step * step)].merge(row)
    return dict(found)


def told(sketch: LatencySketch | SketchRow) -> tuple[object, ...]:
    plain = (sketch.count, sketch.min_ms, sketch.max_ms, sketch.negative, sketch.bound_ms, dict(sketch.buckets))
    return (*plain, round(sketch.sum_ms, 3))


@settings(max_examples=100, deadline=None)
@given(ROWS, some.sampled_from([1, 7, 60, 1440]), BOUNDLESS)
def test_merging_a_sheet_is_merging_its_sketches(rows: list[SketchRow], step: int, boundless: bool) -> None:
    if boundless:
        rows = [replace(row, bound_ms=None) if at % 2 else row for at, row in enumerate(rows)]
    expected = merged_one_by_one(rows, step)
    merged = Sheet.of_rows(rows).merged(step)
    found = {(*path_of(row), row.minute): told(row) for row in merged.rows()}
    assert found == {key: told(sketch) for key, sketch in expected.items()}


@settings(max_examples=100, deadline=None)
@given(ROWS, some.lists(some.floats(0, 1), min_size=1, max_size=4))
def test_quantiles_are_those_of_the_sketches(rows: list[SketchRow], shares: list[float]) -> None:
    steps, merged = Sheet.of_rows(rows).by_step(10)
    sketches: defaultdict[int, LatencySketch] = defaultdict(LatencySketch)
    for row in rows:
        sketches[row.minute // 10].merge(row)
    assert steps.tolist() == sorted(sketches)
    for share, values in zip(shares, merged.quantiles_ms(*shares), strict=True):
        assert values.tolist() == [sketches[step].quantile_ms(share) for step in sorted(sketches)]


@settings(max_examples=60, deadline=None)
@given(ROWS, some.integers(1, 40))
def test_large_sheets_are_merged_in_blocks_and_give_the_same(rows: list[SketchRow], cells: int) -> None:
    sheet = Sheet.of_rows(rows)
    whole = sheet.merged(1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("downburst.sketches.sheet.MOST_CELLS", cells)
        assert list(sheet.merged(1).rows()) == list(whole.rows())
        in_blocks = sheet.by_path().quantiles_ms(0.5, 1.0)
    for one, other in zip(in_blocks, sheet.by_path().quantiles_ms(0.5, 1.0), strict=True):
        assert one.tolist() == other.tolist()


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_a_sheet_comes_back_from_its_bytes(rows: list[SketchRow]) -> None:
    sheet = Sheet.of_rows(rows)
    packed = pack_sheet(sheet, begin=0)
    found = Unpacking().sheet(packed, feed="NGRID", kind="distribution", begin=0)
    assert list(found.rows()) == list(sheet.rows())
    moved = Unpacking().sheet(packed, feed="NGRID", kind="distribution", begin=600)
    assert (moved.minute - sheet.minute == 600).all()


@settings(max_examples=200, deadline=None)
@given(some.integers(0, 60_000), some.integers(0, 60_000))
def test_spans_make_up_a_range_without_gap_or_double(one: int, other: int) -> None:
    begin, end = min(one, other), max(one, other)
    spans = sorted(cover(begin, end, STEPS), key=lambda span: span[1])
    at = begin
    for step, first, last in spans:
        assert first == at
        assert first % step == 0 == last % step
        at = last
    assert at == end or not spans
    assert sum((last - first) // step for step, first, last in spans) <= (end - begin) // STEPS[-1] + 2 * 75


def test_a_selection_of_rows_takes_their_buckets_along() -> None:
    rows = [
        sketch_row([1, 2, 3], site="a.edu", minute=5),
        sketch_row([40], site="b.edu", minute=6, transport=Transport.MULTICAST),
        sketch_row([-7, 8], site="a.edu", minute=70, transport=Transport.MULTICAST),
    ]
    sheet = Sheet.of_rows(rows)
    assert list(sheet.narrowed("a.edu", None).rows()) == [rows[0], rows[2]]
    assert list(sheet.narrowed(None, "multicast").rows()) == rows[1:]
    assert list(sheet.narrowed("b.edu", "unicast").rows()) == []
    assert list(sheet.between(6, 70).rows()) == [rows[1]]
    assert list(Sheet.joined([sheet.between(0, 6), Sheet.empty(), sheet.between(6, 99)]).rows()) == rows
    assert len(Sheet.of_rows([replace(rows[0], count=0, buckets={})])) == 0


def test_paths_of_several_feeds_and_kinds_stay_apart() -> None:
    rows = [sketch_row([1], feed=feed, kind=kind) for feed in ("A", "B") for kind in LatencyKind]
    apart = Sheet.joined(Sheet.of_rows([row]) for row in rows)
    assert apart.by_path().count.tolist() == [1] * len(rows)
    assert list(apart.rows()) == rows


@pytest.mark.parametrize("value_ms", [0.0, 0.0009, 0.001, 1.0, -1.0, -0.3, 7.7, 1e9, -1e9])
def test_codes_of_buckets_rise_with_their_values(value_ms: float) -> None:
    bucket = bucket_of(value_ms)
    assert bucket_of_code(code_of(bucket)) == bucket
    assert np.sign(code_of(bucket)) == np.sign(value_of(bucket))
    assert code_of(bucket_of(value_ms + 1 + abs(value_ms))) > code_of(bucket)


@pytest.mark.parametrize("spoil", ["cut", "version", "bit", "nothing"])
def test_a_damaged_sheet_is_said(spoil: str) -> None:
    packed = pack_sheet(Sheet.of_rows([sketch_row([1, 2, 3])]), begin=0)
    spoilt = {
        "cut": packed[:-3],
        "version": b"\x07" + packed[1:],
        "bit": packed[:9] + bytes([packed[9] ^ 0xFF]) + packed[10:],
        "nothing": b"",
    }[spoil]
    with pytest.raises(ValueError, match="a sheet of latencies"):
        Unpacking().sheet(spoilt, feed="NGRID", kind="distribution", begin=0)


def test_sites_of_a_feed_come_together() -> None:
    rows = [
        sketch_row([1, 2], site="a.edu"),
        sketch_row([3], site="b.edu"),
        sketch_row([4], site="b.edu", feed="TEXT"),
    ]
    by_feed = Sheet.of_rows(rows).by_feed()
    assert [(path.feed, path.site) for path in by_feed.paths] == [("NGRID", ""), ("TEXT", "")]
    assert by_feed.by_path().count.tolist() == [3, 1]
