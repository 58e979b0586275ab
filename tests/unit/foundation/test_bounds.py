"""The bounds of values that cross a border: the same as the node's."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from downburst.foundation import bounds
from downburst.foundation.bounds import OutOfBounds
from downburst.foundation.clock import from_us, to_us

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "bounds.json").read_text())


def test_the_bounds_are_the_golden_ones() -> None:
    found = {name: getattr(bounds, name.upper()) for name in GOLDEN if name != "dates"}
    assert found == {name: value for name, value in GOLDEN.items() if name != "dates"}


def test_stamps_within_bounds_are_dates() -> None:
    for date, name in GOLDEN["dates"].items():
        assert from_us(GOLDEN[name]).isoformat(timespec="microseconds") == date
    assert to_us(datetime.max.replace(tzinfo=UTC)) == bounds.ORIGIN_MAX_US


@pytest.mark.parametrize("value", [-1, 2**63, True, 1.0, "1", None])
def test_what_is_no_count_is_refused(value: object) -> None:
    with pytest.raises(OutOfBounds):
        bounds.count(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 10**400, "1", True])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(OutOfBounds):
        bounds.number(value, most=1e18)


@pytest.mark.parametrize("value", ["", "-1", "1.0", "1" * 21, "\u0661", 7])
def test_what_is_no_epoch_is_refused(value: object) -> None:
    with pytest.raises(OutOfBounds):
        bounds.epoch(value)


def test_texts_are_cut_and_cleaned() -> None:
    assert bounds.sentence("a\0b\nc\ud800d") == "a b c d"
    assert len(bounds.sentence("x" * 10**6)) == bounds.SENTENCE_CHARS_MAX
    with pytest.raises(OutOfBounds, match="can't be a site's name"):
        bounds.site_name("../etc")


def test_a_value_is_shown_short_whatever_it_is() -> None:
    assert bounds.shown(10**5000) == "a number of 16610 bits"
    assert len(bounds.shown("x" * 10**6)) < 200
