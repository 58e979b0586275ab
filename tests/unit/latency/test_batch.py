"""Batch files: read whole or refused whole, with the reason."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.model import LatencyKind, Transport
from downburst_latency.batch import parse_batch
from unit.latency.batches import document


def test_a_batch_is_read_into_the_shared_words() -> None:
    batch = parse_batch(json.dumps(document()))
    assert batch.id == "b1"
    (sketch,) = batch.sketches
    assert (sketch.transport, sketch.kind) == (Transport.MULTICAST, LatencyKind.DISTRIBUTION)
    assert dict(sketch.buckets) == {"18": 2, "-17": 1, "n9": 1}
    assert batch.exceptions[0].outcome == "expired"
    assert (batch.settled[0].settled_to, batch.settled[0].stored_bytes) == (9, 4_000)


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        (("batch",), "", "is no name"),
        (("sketches", 0, "count"), 9, "the buckets hold 4 values, the sketch counts 9"),
        (("sketches", 0, "buckets"), {"x9": 4}, "invalid literal"),
        (("sketches", 0, "transport"), "pigeon", "not a valid Transport"),
        (("sketches", 0, "kind"), 5, "5 is no name"),
        (("sketches", 0, "sum_ms"), "1", "is no number"),
        (("sketches", 0, "minute"), -1, "is no count"),
        (("exceptions", 0, "at_us"), True, "is no count"),
        (("exceptions", 0, "at_us"), 10**30, "wrong shape"),
        (("settled", 0, "stored"), 1.5, "is no count"),
        (("settled",), None, "wrong shape"),
        (("settled", 0), 5, "wrong shape"),
    ],
)
def test_a_batch_with_one_wrong_field_is_refused_whole(where: tuple[Any, ...], value: object, says: str) -> None:
    spoilt = copy.deepcopy(document())
    place: Any = spoilt
    for step in where[:-1]:
        place = place[step]
    place[where[-1]] = value
    with pytest.raises(ValueError, match=says):
        parse_batch(json.dumps(spoilt))


@pytest.mark.parametrize("field", ["batch", "sketches", "exceptions", "settled"])
def test_a_missing_field_is_named(field: str) -> None:
    spoilt = document()
    del spoilt[field]
    with pytest.raises(ValueError, match=f"the field '{field}' is missing"):
        parse_batch(json.dumps(spoilt))


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_whatever_is_no_batch_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_batch(text)


def test_a_torn_file_is_a_value_error() -> None:
    whole = json.dumps(document())
    for length in range(len(whole)):
        with pytest.raises(ValueError, match=r".*"):
            parse_batch(whole[:length])


def test_a_kind_of_a_later_release_is_passed_over() -> None:
    newer = document()
    newer["sketches"].append({**newer["sketches"][0], "kind": "lunar"})
    assert parse_batch(json.dumps(newer)) == parse_batch(json.dumps(document()))
