"""Heavy pairs: learnt on one day, covered on the next, forgotten when they are no longer heavy."""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from downburst.foundation.errors import BadInput
from downburst_analyze.pairs.learning import MINUTES_A_DAY, HeavyStudy, LearningRules, PairMinute, learn
from downburst_analyze.pairs.rows import pair_minutes

SEED = int(os.environ.get("DOWNBURST_SEED", "1"))
"""`DOWNBURST_SEED=n pytest tests/unit/analyze/test_heavy_pairs.py` plays other loads."""
HEAVY, LIGHT = 1_500_000_000, 200_000_000
FIRST_DAY = 20_000


def heavy(
    minute: int, site: str = "big", *, day: int = 0, size_bytes: int = HEAVY, feed: str = "GRIDS"
) -> PairMinute:
    return PairMinute(feed, site, (FIRST_DAY + day) * MINUTES_A_DAY + minute, size_bytes)


def learnt(rows: Iterable[PairMinute], **rules: int) -> HeavyStudy:
    return learn(sorted(rows, key=lambda one: one.minute), LearningRules(**rules))


def ruled(study: HeavyStudy) -> set[str]:
    return {one.site for one in study.pairs}


def stationary(random: np.random.Generator, days: int, *, pairs: int = 20, one_offs: int = 15) -> list[PairMinute]:
    """Each true pair has a dozen heavy flows of one or two minutes a day; other flows come once and never again.
    The true pairs have light minutes too."""
    rows = []
    for day in range(days):
        for pair in range(pairs):
            starts = random.integers(0, MINUTES_A_DAY - 2, 12).tolist()
            rows += [heavy(at + n, f"true-{pair}", day=day) for at in starts for n in range(random.integers(1, 3))]
            rows += [heavy(at, f"true-{pair}", day=day, size_bytes=LIGHT) for at in range(0, MINUTES_A_DAY, 60)]
        for number in range(one_offs):
            at = int(random.integers(0, MINUTES_A_DAY - 2))
            rows += [
                heavy(at + n, f"once-{day}-{number}", day=day, size_bytes=HEAVY // 3 * 2 + LIGHT) for n in (0, 1)
            ]
    return rows


def test_what_one_day_teaches_covers_the_next_one_of_a_stationary_load() -> None:
    study = learnt(stationary(np.random.default_rng(SEED), 2))
    second = study.days[1]
    assert second.covered_share is not None
    assert second.covered_share >= 0.9
    assert second.rules <= 2 * 20
    assert second.unused_rules == 0
    assert ruled(study) == {f"true-{number}" for number in range(20)}, "no rule for a flow that came once"
    assert study.days[0].covered_bytes == study.days[0].rules == 0
    assert "20 pairs of feed and site are over 1 GB in a minute again and again" in study.sentence


def test_a_long_flow_that_never_comes_again_loses_its_rule_with_age() -> None:
    every_day = [heavy(at, day=day) for day in range(10) for at in (100, 900)]
    once = [heavy(at, "once") for at in range(45)]
    assert ruled(learnt([*every_day[:8], *once])) == {"big", "once"}
    study = learnt([*every_day, *once])
    assert ruled(study) == {"big"}
    assert [day.unused_rules for day in study.days] == [0, 1, 1, 1, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(("apart", "has_rule"), [(29, False), (30, True)])
def test_a_rule_needs_heavy_minutes_half_an_hour_apart(apart: int, has_rule: bool) -> None:
    assert bool(learnt([heavy(0), heavy(apart)]).pairs) == has_rule


def test_a_minute_is_heavy_above_the_threshold_summed_over_its_rows() -> None:
    parts = [heavy(at, size_bytes=500_000_000) for at in (0, 0, 40, 40)]
    assert learnt(parts).days[0].heavy_pairs == 0, "exactly 1 GB is not above it"
    (only,) = learnt([*parts, heavy(0, size_bytes=1), heavy(40, size_bytes=1)]).pairs
    assert (only.heavy_minutes, only.heavy_bytes, only.feed) == (2, 2_000_000_002, "GRIDS")
    assert learnt(parts, heavy_bytes=100).pairs, "another threshold"


def test_feeds_of_a_site_are_pairs_of_their_own() -> None:
    study = learnt([heavy(0, feed="A"), heavy(50, feed="B"), heavy(99, feed="B")])
    assert [one.feed for one in study.pairs] == ["B"]


def test_days_without_rows_age_rules_too_and_nothing_learns_nothing() -> None:
    rows = [heavy(0), heavy(60)]
    assert ruled(learnt([*rows, heavy(0, day=7, size_bytes=LIGHT)])) == {"big"}
    assert ruled(learnt([*rows, heavy(0, day=8, size_bytes=LIGHT)])) == set()
    assert (learn([]).pairs, learn([]).days) == ((), ())
    assert learn([]).sentence.startswith("no pair of feed and site")


def test_rows_out_of_order_are_refused() -> None:
    with pytest.raises(BadInput, match="sort the rows by time"):
        learn([heavy(5), heavy(4)])


def test_rows_are_read_by_the_names_of_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("site,bytes,minute,feed\na,5,2026-01-31T06:00Z,F\n\na,6,29497321,F\n")
    assert list(pair_minutes(path)) == [PairMinute("F", "a", 29_497_320, 5), PairMinute("F", "a", 29_497_321, 6)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "line 1: no column is called feed; name them feed, site, minute, bytes"),
        ("feed,site,minute,bytes\nF,a,1\n", "line 2: the row has 3 columns and the first line 4"),
        ("feed,site,minute,bytes\nF,a,1,-1\n", "line 2: '-1' is not a whole number"),
        ("feed,site,minute,bytes\nF,a,soon,1\n", "line 2: 'soon' is not a minute"),
        ("feed,site,minute,bytes\nF,a,1960-01-01T00:00Z,1\n", "line 2: '1960-01-01T00:00Z' is before 1970"),
        ("feed,site,minute,bytes\nF,a,99999999999,1\n", "line 2: '99999999999' is not a whole number"),
        ("feed,site,minute,bytes\nF,,1,1\n", "line 2: '' is not a name"),
    ],
)
def test_rows_that_can_not_be_read_are_refused_with_the_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(content)
    with pytest.raises(BadInput) as refused:
        list(pair_minutes(path))
    assert refused.value.sentence.startswith(f"pairs.csv, {says}")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="can't be read"):
        list(pair_minutes(tmp_path / "none.csv"))
