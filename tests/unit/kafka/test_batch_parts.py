"""A large batch in parts: nothing is lost or doubled, and it is cut the same way each time."""

import json
from typing import Any

from downburst.kafka.batches import PART_BYTES, parts_of

ROW = {"feed": "NGRID", "site": "unl.edu", "minute": 5, "buckets": {str(number): number for number in range(40)}}


def batch(rows: int) -> str:
    lists = {name: [ROW | {"number": number} for number in range(rows)] for name in ("sketches", "settled")}
    return json.dumps({"batch": "b1", "version": 7, "exceptions": [], **lists})


def test_a_small_batch_travels_as_it_is() -> None:
    text = batch(3)
    assert list(parts_of(text)) == [("b1", text.encode())]


def test_the_parts_of_a_large_one_hold_every_row_once_under_ids_of_their_own() -> None:
    text = batch(2_000)
    cut = list(parts_of(text))
    assert len(cut) > 2
    assert [part_id for part_id, _ in cut] == [f"b1.{number}" for number in range(len(cut))]
    assert max(len(record) for _, record in cut) < PART_BYTES * 1.1
    whole: dict[str, list[Any]] = {"sketches": [], "exceptions": [], "settled": []}
    for part_id, record in cut:
        part = json.loads(record)
        assert (part["batch"], part["version"]) == (part_id, 7)
        for name in whole:
            whole[name] += part[name]
    assert whole == {name: json.loads(text)[name] for name in whole}
    assert list(parts_of(text)) == cut
