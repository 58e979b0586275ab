"""Rules from paths to products."""

import pytest

from downburst.foundation.errors import BadInput, BadName, BadSettings
from downburst_ingest.rules import PathRule, PathRules


def test_without_rules_the_first_directory_is_the_feed() -> None:
    product = PathRules().product_of("IDS|DDPLUS/a/b c.txt")
    assert (product.feed, product.product_id) == ("IDS|DDPLUS", "a/b c.txt")


def test_the_first_rule_that_matches_decides() -> None:
    rules = PathRules(
        [
            PathRule.parse(r"grids/(.+)\.grib2$", feed="NGRID", product_id=r"\1"),
            PathRule.parse(r"(?P<feed>\w+)/(?P<id>.*)", feed=r"\g<feed>", product_id=r"\g<id>!\g<0>"),
        ]
    )
    assert rules.product_of("grids/a.grib2").product_id == "a"
    other = rules.product_of("grids/a.grib2.gz")
    assert (other.feed, other.product_id) == ("grids", "a.grib2.gz!grids/a.grib2.gz")


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("x", "the name of a feed"),
        ("a b/x", "letters, digits and"),
        ("F/" + "x" * 256, "256 bytes"),
        ("/x", "1 to 64"),
    ],
)
def test_paths_without_a_product_are_refused_with_the_reason(path: str, part: str) -> None:
    with pytest.raises(BadName, match=part):
        PathRules().product_of(path)


def test_a_path_that_no_rule_matches_is_refused() -> None:
    with pytest.raises(BadInput, match="no watch rule matches"):
        PathRules([PathRule.parse("a", feed="A", product_id="a")]).product_of("b")


@pytest.mark.parametrize(
    ("pattern", "feed", "part"),
    [
        ("(a", "A", "at character 1"),
        ("a", r"\1", "group 1"),
        ("(?P<x>a)", r"\g<y>", "group 'y'"),
        ("(a)", r"\g<2>", "group 2"),
    ],
)
def test_bad_rules_are_found_before_anything_is_watched(pattern: str, feed: str, part: str) -> None:
    with pytest.raises(BadSettings, match=part):
        PathRule.parse(pattern, feed=feed, product_id="x")
