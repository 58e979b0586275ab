"""The latency sketch: shared golden cases, accuracy, and merging."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.domain.latency import LatencyKind, SketchRow
from downburst.domain.plans import Transport
from downburst.sketches.sketch import LatencySketch, bucket_of, check_buckets, value_of

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[2] / "golden" / "sketch.json").read_text())

latencies_ms = st.floats(-1e7, 1e7, allow_nan=False)


def sketch_of(values_ms: list[float]) -> LatencySketch:
    sketch = LatencySketch()
    for value_ms in values_ms:
        sketch.add(value_ms)
    return sketch


def row(sketch: LatencySketch, minute: int = 0) -> SketchRow:
    return SketchRow(
        feed="NGRID",
        site="unl.edu",
        transport=Transport.UNICAST,
        kind=LatencyKind.DISTRIBUTION,
        minute=minute,
        count=sketch.count,
        sum_ms=sketch.sum_ms,
        min_ms=sketch.min_ms,
        max_ms=sketch.max_ms,
        negative=sketch.negative,
        bound_ms=sketch.bound_ms,
        buckets=sketch.buckets,
    )


@pytest.mark.parametrize("case", GOLDEN["values"], ids=lambda case: str(case["ms"]))
def test_golden_values_fall_into_their_buckets(case: dict[str, Any]) -> None:
    assert bucket_of(case["ms"]) == case["bucket"]
    assert value_of(case["bucket"]) == pytest.approx(case["value_ms"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("case", GOLDEN["sets"], ids=lambda case: case["why"])
def test_golden_sets_give_their_quantiles(case: dict[str, Any]) -> None:
    sketch = sketch_of(case["values_ms"])
    assert sketch.buckets == case["buckets"]
    assert (sketch.count, sketch.negative) == (case["count"], case["negative"])
    assert (sketch.min_ms, sketch.max_ms) == (case["min_ms"], case["max_ms"])
    assert sketch.sum_ms == pytest.approx(case["sum_ms"])
    for share, expected_ms in case["quantiles_ms"].items():
        assert sketch.quantile_ms(float(share)) == pytest.approx(expected_ms, rel=1e-9, abs=1e-9)
        assert sketch.quantile_ms(float(share)) == pytest.approx(case["exact_ms"][share], rel=0.02, abs=0.001)


@given(st.lists(latencies_ms, min_size=1, max_size=60), st.floats(0, 1))
def test_a_quantile_is_within_two_per_cent_of_the_value_of_its_rank(values_ms: list[float], share: float) -> None:
    sketch = sketch_of(values_ms)
    exact_ms = next(
        value for index, value in enumerate(sorted(values_ms)) if index + 1 >= share * len(values_ms) - 1e-9
    )
    assert sketch.quantile_ms(share) == pytest.approx(exact_ms, rel=0.0201, abs=0.001)


@given(st.lists(latencies_ms, max_size=40), st.lists(latencies_ms, max_size=40))
def test_merging_rows_equals_counting_everything_in_one_sketch(one: list[float], other: list[float]) -> None:
    rows = [row(sketch_of(values)) for values in (one, other)]
    merged, whole = LatencySketch.of_rows(rows), sketch_of(one + other)
    assert merged.buckets == whole.buckets
    assert (merged.count, merged.negative) == (whole.count, whole.negative)
    assert (merged.min_ms, merged.max_ms) == (whole.min_ms, whole.max_ms)
    for share in (0.0, 0.5, 0.99, 1.0):
        assert merged.quantile_ms(share) == whole.quantile_ms(share)


def test_merging_leaves_the_rows_alone() -> None:
    first, second = row(sketch_of([1.0])), row(sketch_of([1.0]))
    LatencySketch.of_rows([first, second])
    assert dict(first.buckets) == {"0": 1}


def test_the_widest_clock_bound_is_kept_and_an_unknown_one_changes_nothing() -> None:
    sketch = LatencySketch()
    for bound_ms in (0.4, None, 1.5, 0.2):
        sketch.add(10.0, bound_ms)
    assert sketch.bound_ms == 1.5


def test_nothing_counted_has_no_quantile() -> None:
    empty = LatencySketch.of_rows([])
    assert empty.quantile_ms(0.5) is None
    assert empty.mean_ms() is None
    assert math.isinf(empty.min_ms)


def test_both_spellings_of_index_zero_are_one_bucket() -> None:
    written = row(sketch_of([0.99, 1.0, -0.99]))
    other = replace(written, buckets={"-0": 2, "n-0": 1})
    merged = LatencySketch.of_rows([written, other])
    assert merged.buckets == {"0": 4, "n0": 2}


def test_a_value_below_one_millisecond_and_a_negative_one_never_share_a_bucket() -> None:
    sketch = sketch_of([0.71, -1.4])
    assert sorted(sketch.buckets.values()) == [1, 1]
    assert sketch.quantile_ms(0.0) == -1.4
    assert sketch.quantile_ms(1.0) == pytest.approx(0.71, rel=0.02)


@pytest.mark.parametrize(
    ("buckets", "count", "says"),
    [
        ({"3": 2}, 3, "hold 2 values, the sketch counts 3"),
        ({"x": 1}, 1, "invalid literal"),
        ({"3": -1, "4": 2}, 1, "holds -1"),
    ],
)
def test_buckets_that_no_node_writes_are_refused(buckets: dict[str, int], count: int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_buckets(buckets, count=count)
