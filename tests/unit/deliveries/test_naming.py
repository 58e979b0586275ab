"""Names that people write for a product."""

import json
from pathlib import Path

import pytest

from downburst.deliveries import Meaning, ProductName, meanings
from downburst.foundation.errors import BadInput

FEEDS = ("NGRID", "IDS|DDPLUS")
GOLDEN = json.loads((Path(__file__).parents[2] / "golden/file-names.json").read_text())


def _read(text: str, feed: str | None = None) -> list[ProductName]:
    return meanings(text, feed=feed, feeds=FEEDS)


def test_a_feed_and_a_number_name_a_place_in_the_log_before_an_id() -> None:
    first, second = _read("IDS|DDPLUS:4711")
    assert first == ProductName(Meaning.SEQUENCE, feed="IDS|DDPLUS", sequence=4711)
    assert second == ProductName(Meaning.PRODUCT_ID, product_id="IDS|DDPLUS:4711")
    assert [name.meaning for name in _read("OTHER:4711")] == [Meaning.PRODUCT_ID]
    assert [name.meaning for name in _read("NGRID:")] == [Meaning.PRODUCT_ID]


def test_a_number_is_a_sequence_once_the_feed_is_known() -> None:
    assert _read("4711", "NGRID")[0] == ProductName(Meaning.SEQUENCE, feed="NGRID", sequence=4711)
    assert _read("4711")[0].meaning is Meaning.PRODUCT_ID


def test_every_golden_file_name_names_its_product_under_any_directory() -> None:
    assert len(GOLDEN["names"]) > 10
    for golden in GOLDEN["names"]:
        for prefix in ("", "received/", "/data/downburst/received/", "unl:/srv/a_b/received/"):
            found = _read(prefix + golden["path"])[0]
            expected = (Meaning.FILE, golden["feed"], str(int(golden["epoch"], 16)), golden["sequence"])
            assert (found.meaning, found.feed, found.epoch, found.sequence) == expected


def test_hexadecimal_digits_are_an_id_first_and_then_a_digest() -> None:
    names = _read("DEADBEEF00")
    assert [name.meaning for name in names] == [Meaning.PRODUCT_ID, Meaning.DIGEST]
    assert names[1].digest == "deadbeef00"
    assert [name.meaning for name in _read("deadbee")] == [Meaning.PRODUCT_ID]


def test_a_feed_that_was_asked_for_leaves_other_feeds_out() -> None:
    assert [name.meaning for name in _read("IDS|DDPLUS:4711", "NGRID")] == [Meaning.PRODUCT_ID]


def test_what_names_nothing_is_refused_in_one_sentence() -> None:
    with pytest.raises(BadInput, match="names no product"):
        _read("x" * 300)
