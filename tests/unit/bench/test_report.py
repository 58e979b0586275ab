"""Rows, goals, table and JSON of the measurements."""

import json
from pathlib import Path

import pytest
from bench.harness.report import Goal, Row, document, figure, machine, markdown, median, table, write

ROW = Row("7", "narrow links", "Mb/s", 88.0, "TCP fan-out", 13.2, 3, Goal("ratio", ">=", 6.3))
ALONE = Row("1", "no loss", "Mb/s", 95.0, "uftp", None, 3, Goal("ratio", ">=", 8))


def test_a_row_has_the_keys_that_all_measurements_share() -> None:
    assert ROW.as_json() == {
        "id": "7",
        "case": "narrow links",
        "unit": "Mb/s",
        "ours": 88.0,
        "against": "TCP fan-out",
        "theirs": 13.2,
        "ratio": 6.6667,
        "goal": "ratio >= 6.3",
        "met": True,
        "runs": 3,
    }


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal("ours", ">=", 88), True),
        (Goal("ours", ">=", 88.1), False),
        (Goal("ours", "<=", 88), True),
        (Goal("ours", "<=", 87.9), False),
        (Goal("ratio", "<=", 6), False),
        (Goal("ratio", "<=", 7), True),
        (Goal("ratio", "1 +-", 5.6), False),
        (Goal("ratio", "1 +-", 5.7), True),
    ],
)
def test_a_goal_bounds_the_own_figure_or_the_ratio(goal: Goal, met: bool) -> None:
    assert goal.met(ours=88, ratio=88 / 13.2) is met


def test_without_the_peer_a_goal_on_the_ratio_is_not_judged_and_one_on_the_own_figure_is() -> None:
    assert ALONE.ratio is None
    assert ALONE.met is None
    assert Row("4", "1 %", "%", 7.0, "uftp", None, 3, Goal("ours", "<=", 2)).met is False


def test_a_peer_that_delivered_nothing_gives_no_ratio() -> None:
    assert Row("1", "no loss", "Mb/s", 95.0, "uftp", 0.0, 3).ratio is None


def test_a_row_without_a_goal_is_neither_met_nor_missed() -> None:
    described = Row("1", "asked", "Mb/s", 95.0, "uftp", 97.0, 3).as_json()
    assert (described["goal"], described["met"]) == ("", None)


def test_the_table_is_aligned_and_shows_what_was_missed() -> None:
    missed = Row("4", "1 % at all", "%", 7.04, "uftp", 7.1, 3, Goal("ours", "<=", 2))
    lines = table([ROW, missed, ALONE]).splitlines()
    assert lines[0].split() == ["row", "case", "unit", "ours", "against", "theirs", "ratio", "goal", "met", "runs"]
    assert lines[1].index("yes") == lines[2].index("no ") == lines[0].index("met")
    assert "7.04" in lines[2]
    assert " -  " in lines[3]


def test_markdown_has_a_cell_for_each_column() -> None:
    lines = markdown([ROW, ALONE]).splitlines()
    assert {line.count("|") for line in lines} == {11}
    assert lines[2].startswith("| 7 | narrow links | Mb/s | 88 | TCP fan-out | 13.2 | 6.67 |")


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, "-"), (0.0, "0"), (0.9876, "0.988"), (7.04, "7.04"), (99.96, "100"), (1234.5, "1234")],
)
def test_figures_have_three_digits_that_matter(value: float | None, written: str) -> None:
    assert figure(value) == written


def test_the_result_is_read_back_as_written(tmp_path: Path) -> None:
    result = document("multicast", machine(), [ROW, ALONE], ["uftp is not installed"])
    write(tmp_path / "result.json", result)
    read = json.loads((tmp_path / "result.json").read_text())
    assert read == result
    assert (read["bench"], len(read["rows"]), read["notes"]) == ("multicast", 2, ["uftp is not installed"])
    assert {"cores", "cpu", "kernel", "memory_bytes", "load_1min"} == set(read["machine"])


def test_the_median_is_not_moved_by_one_bad_run() -> None:
    assert median([95.0, 2.0, 96.0]) == 95.0
