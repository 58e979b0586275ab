"""Batch files: an impossible entry is set aside with the reason; a file that is not a batch is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.domain.latency import LatencyKind
from downburst.domain.plans import Transport
from downburst.foundation.bounds import SetAside
from downburst_latency.batch import parse_batch, read_batch
from unit.latency.batches import document


def test_a_batch_is_read_into_the_shared_words() -> None:
    batch = parse_batch(json.dumps(document()))
    assert batch.id == "b1"
    (sketch,) = batch.sketches
    assert (sketch.transport, sketch.kind) == (Transport.MULTICAST, LatencyKind.DISTRIBUTION)
    assert dict(sketch.buckets) == {"18": 2, "-17": 1, "n9": 1}
    assert batch.exceptions[0].outcome == "expired"
    assert (batch.settled[0].settled_to, batch.settled[0].stored_bytes) == (9, 4_000)
    assert (batch.settled[0].late_at_hub, batch.settled[0].late_at_site) == (3, 2)


def test_a_node_of_an_earlier_release_counts_no_late_products() -> None:
    older = document()
    del older["settled"][0]["late_at_hub"], older["settled"][0]["late_at_site"]
    del older["seconds"]
    read = read_batch(json.dumps(older))
    assert (read.batch.settled[0].late_at_hub, read.batch.seconds, read.set_aside) == (0, (), ())


def test_a_second_of_a_feed_with_a_deadline_has_its_counts_and_delays() -> None:
    (second,) = parse_batch(json.dumps(document())).seconds
    assert (second.stored, second.late_at_hub, second.reordered, second.jitter_us) == (3, 1, 1, 120)
    assert second.delays is not None
    assert (second.delays.count, second.delays.bound_ms) == (3, 0.6)
    unknown = document()
    unknown["seconds"][0] |= {"delay": None, "jitter_us": None}
    (second,) = parse_batch(json.dumps(unknown)).seconds
    assert (second.delays, second.jitter_us) == (None, None)


NO_ENTRIES = [
    (("sketches", 0, "count"), 9, "the buckets hold 4 values, the sketch counts 9"),
    (("sketches", 0, "buckets"), {"x9": 4}, "invalid literal"),
    (("sketches", 0, "buckets"), {"1001": 4}, "is not between -1000 and 1000"),
    (("sketches", 0, "buckets"), {"18": 2, "018": 2}, "the buckets hold 2 values, the sketch counts 4"),
    (("sketches", 0, "transport"), "pigeon", "not a valid Transport"),
    (("seconds", 0, "second"), -1, "is not between 0"),
    (("seconds", 0, "lost"), -1, "-1"),
    (("seconds", 0, "delay", "count"), 9, "the buckets hold 3 values, the sketch counts 9"),
    (("sketches", 0, "kind"), 5, "not a valid LatencyKind"),
    (("sketches", 0, "sum_ms"), "1", "is not a number"),
    (("sketches", 0, "max_ms"), 10**16, "is beyond 1000000000000000"),
    (("sketches", 0, "min_ms"), 3.0, "above its largest"),
    (("sketches", 0, "minute"), -1, "is not between 0 and 120968639"),
    (("sketches", 0, "site"), "No Site", "can't be a site's name"),
    (("sketches", 0), [1], "is not an object"),
    (("exceptions", 0, "at_us"), True, "is not a whole number"),
    (("exceptions", 0, "at_us"), 10**30, "is not between 0 and 7258118399999999"),
    (("exceptions", 0, "epoch"), "7 or 8", "is not the epoch of a log"),
    (("exceptions", 0, "sequence"), 2**63, "is not between 0 and 9223372036854775807"),
    (("exceptions", 0, "outcome"), "lost\0", "is not a name"),
    (("settled", 0, "stored"), 1.5, "is not a count"),
    (("settled", 0, "settled_to"), 2**64 - 1, "is not between 0 and 9223372036854775807"),
    (("settled", 0), 5, "is not an object"),
]


@pytest.mark.parametrize(("where", "value", "says"), NO_ENTRIES, ids=[str(one[0]) for one in NO_ENTRIES])
def test_finding_02_one_entry_that_can_not_be_is_set_aside_and_the_others_count(
    where: tuple[Any, ...], value: object, says: str
) -> None:
    spoilt, sound = document(), document()
    for name in ("sketches", "exceptions", "settled"):
        other = {**sound[name][0], "site": "other"}
        sound[name] = [other]
        spoilt[name].append(other)
    place: Any = spoilt
    for step in where[:-1]:
        place = place[step]
    place[where[-1]] = value
    read = read_batch(json.dumps(spoilt))
    (aside,) = read.set_aside
    assert says in aside.sentence
    assert aside.site in ("unl.edu", None)
    for name in ("sketches", "exceptions", "settled"):
        kept = getattr(read.batch, name)
        assert [entry for entry in kept if entry.site == "other"] == list(
            getattr(parse_batch(json.dumps(sound)), name)
        )
        assert len(kept) == (1 if name == where[0] else 2)


def test_an_entry_without_a_field_is_set_aside_with_its_name() -> None:
    spoilt = document()
    del spoilt["settled"][0]["rejected"]
    assert read_batch(json.dumps(spoilt)).set_aside == (SetAside("unl.edu", "a frontier lacks the field 'rejected'"),)


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [(("batch",), "", "is not a name"), (("settled",), None, "is not a list")],
)
def test_a_file_that_is_no_batch_is_refused_whole(where: tuple[Any, ...], value: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_batch(json.dumps(document() | {where[0]: value}))


def test_a_batch_of_endless_nesting_is_refused() -> None:
    with pytest.raises(ValueError, match="wrong shape"):
        parse_batch("[" * 200_000)


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
