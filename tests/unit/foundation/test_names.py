"""Names follow the golden file, which the node reads too."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from downburst.foundation.errors import BadName
from downburst.foundation.names import (
    check_feed_name,
    check_origin,
    check_product_id,
    check_site_name,
    check_user_name,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "names.json").read_text())
CHECKS: dict[str, Callable[[str], str]] = {
    "feed": check_feed_name,
    "product_id": check_product_id,
    "site": check_site_name,
    "user": check_user_name,
    "origin": check_origin,
}
GOOD = [(kind, name) for kind, cases in GOLDEN.items() for name in cases["good"]]
BAD = [(kind, name, part) for kind, cases in GOLDEN.items() for name, part in cases["bad"]]


@pytest.mark.parametrize(("kind", "name"), GOOD)
def test_good_names_are_taken_as_they_are(kind: str, name: str) -> None:
    assert CHECKS[kind](name) == name


@pytest.mark.parametrize(("kind", "name", "part"), BAD)
def test_bad_names_are_refused_with_the_reason(kind: str, name: str, part: str) -> None:
    with pytest.raises(BadName) as refused:
        CHECKS[kind](name)
    assert part in refused.value.sentence


@pytest.mark.parametrize("kind", ["feed", "site", "user"])
@pytest.mark.parametrize("name", [".", "..", "*", "=cmd", "-r", "@SUM(A1)", "+1", "?", "[a]", "~", "'", "a b", "a/b"])
def test_finding_17_what_stands_for_something_else_is_no_name(kind: str, name: str) -> None:
    with pytest.raises(BadName):
        CHECKS[kind](name)


def test_the_limit_of_an_id_counts_bytes() -> None:
    for case in GOLDEN["product_id"]["too_long"]:
        with pytest.raises(BadName, match=case["part"]):
            check_product_id(case["repeat"] * case["times"])
        assert check_product_id(case["repeat"] * (255 // len(case["repeat"].encode())))


def test_half_a_surrogate_pair_is_no_text() -> None:
    for check in (check_product_id, check_feed_name):
        with pytest.raises(BadName, match="UTF-8"):
            check("\ud800")
