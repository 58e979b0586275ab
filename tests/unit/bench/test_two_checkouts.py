"""The comparison of two checkouts, with a measurement that is a small program of the test."""

import sys
from pathlib import Path

import pytest
from bench import two_checkouts
from bench.harness import report
from bench.two_checkouts import Key

CPU = Key("4", "CPU per delivery", "us")
PROGRAM = """
import argparse, json, os, pathlib
parser = argparse.ArgumentParser()
for name in ("--runs", "--out", "--rows"):
    parser.add_argument(name)
options = parser.parse_args()
assert os.environ["CARGO_TARGET_DIR"] == str(pathlib.Path.cwd() / "workers/target")
row = {"id": options.rows, "case": "CPU per delivery", "unit": "us", "ours": 12.5, "theirs": 3}
pathlib.Path(options.out).write_text(json.dumps({"rows": [row, row]}))
"""


def checkout(directory: Path, program: str) -> Path:
    """A directory with an interpreter and a measurement, as a checkout has them."""
    (directory / ".venv/bin").mkdir(parents=True)
    (directory / ".venv/bin/python").symlink_to(sys.executable)
    (directory / "bench").mkdir()
    (directory / "bench/tiny.py").write_text(program)
    return directory


def test_a_turn_runs_the_measurement_of_that_checkout(tmp_path: Path) -> None:
    found = two_checkouts.measured(checkout(tmp_path, PROGRAM), "tiny", ["--rows", "4"])
    assert found == {CPU: 12.5}


def test_a_measurement_that_fails_counts_for_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert two_checkouts.measured(checkout(tmp_path, "raise SystemExit(3)"), "tiny", []) == {}
    assert "failed with code 3" in capsys.readouterr().err


def test_medians_are_compared_and_a_figure_of_one_checkout_is_left_out() -> None:
    other = Key("9", "new", "s")
    (row,) = two_checkouts.rows({CPU: [9, 1, 6], other: [1]}, {CPU: [4, 5, 30]})
    assert (row.ours, row.theirs, row.ratio, row.runs) == (6, 5, 1.2, 3)
    assert "before" in report.table([row])
