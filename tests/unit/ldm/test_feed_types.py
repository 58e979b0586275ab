"""Feed types: the golden expressions that the data plane reads too."""

import json
import random
from pathlib import Path

import pytest

from downburst.foundation.errors import BadInput
from downburst.ldm.feed_types import each_feed, feed_type_name, parse_feed_type

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "ldm6" / "feed-types.json").read_text())


@pytest.mark.parametrize(("text", "bits", "printed"), GOLDEN["good"])
def test_names_aliases_and_expressions_mean_what_they_mean_to_ldm(text: str, bits: int, printed: str | None) -> None:
    assert parse_feed_type(text) == bits
    assert printed is None or feed_type_name(bits) == printed


@pytest.mark.parametrize(("text", "position", "part"), GOLDEN["bad"])
def test_errors_name_the_place(text: str, position: int, part: str) -> None:
    with pytest.raises(BadInput, match=part) as error:
        parse_feed_type(text)
    assert error.value.extra["position"] == position


def test_what_is_printed_is_read_as_the_same_set() -> None:
    drawn = random.Random(7)
    for bits in (drawn.getrandbits(32) for _ in range(500)):
        assert parse_feed_type(feed_type_name(bits)) == bits
        assert parse_feed_type("|".join(each_feed(bits)) or "NONE") == bits
