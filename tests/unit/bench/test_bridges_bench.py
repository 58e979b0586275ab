"""Rows of the bench of bridges, without brokers."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from bench.bridges import rows
from bench.bridges.contenders import Reader, Start
from bench.bridges.rows import CASES, Run, Wanted, family
from bench.bridges.scene import Scene

CASE = CASES["files-2k"]


@contextmanager
def start(_directory: Path, _scene: Scene) -> Iterator[Reader]:
    yield Reader(os.getpid(), lambda: 0)


def test_a_contender_that_is_missing_is_named_and_ours_has_no_goal_to_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = CASE.contenders

    def measured(_case: rows.Case, contender: Start, _count: int) -> Run:
        if contender is CASE.contenders[theirs]:
            pytest.skip("not prepared")
        return Run(300.0, 200.0)

    monkeypatch.setattr(rows, "measured", measured)
    monkeypatch.setattr(rows, "CASES", {"files-2k": CASE})
    wanted = Wanted(2, quick=True)
    found = rows.rows_of(wanted, {"files-2k"})
    assert [(row.unit, row.ours, row.theirs, row.met) for row in found] == [
        ("files/CPU s", 300.0, None, None),
        ("files/s", 200.0, None, None),
    ]
    assert wanted.notes == [f"NOT MEASURED, {CASE.name}, {theirs}: not prepared"]
    assert ours == "downburst"


def test_figures_are_medians_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter(
        [Run(600.0, 1.0), Run(100.0, 1.0), Run(900.0, 1.0), Run(300.0, 1.0), Run(800.0, 1.0), Run(200.0, 1.0)]
    )
    monkeypatch.setattr(rows, "measured", lambda *_: next(turns))
    monkeypatch.setattr(rows, "CASES", {"files-2k": replace(CASE, count=10)})
    (row, _) = rows.rows_of(Wanted(3, quick=False), {"files-2k"})
    assert (row.ours, row.theirs, row.ratio, row.met) == (800.0, 200.0, 4.0, True)


def test_all_processes_of_a_contender_count() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 30 & wait"]) as shell:
        try:
            while len(family(shell.pid)) < 2:
                pass
            assert family(shell.pid)[0] == shell.pid
        finally:
            for pid in reversed(family(shell.pid)):
                os.kill(pid, 15)
