"""Rows of sources: files and notifications for each second of all their processes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.bridges.contenders import Start, hub_that_fetches, hub_that_records, pywis, wis2downloader
from bench.bridges.scene import announced
from bench.harness.counters import cpu_s
from bench.harness.report import Goal, Row, median
from bench.harness.scratch import scratch, tell
from bench.harness.turns import FAILURES


@dataclass(frozen=True)
class Run:
    """One run of a contender."""

    per_cpu_s: float
    per_s: float


@dataclass(frozen=True)
class Wanted:
    """The extent of the measurement."""

    runs: int
    quick: bool
    notes: list[str] = field(default_factory=list)
    """Contenders and rows that were left out, and why."""

    def scaled(self, count: int) -> int:
        """A number of files or notifications."""
        return count // 10 if self.quick else count


@dataclass(frozen=True)
class Case:
    """One thing that contenders do in turns."""

    name: str
    unit: str
    """That which is counted."""
    count: int
    size_bytes: int
    contenders: Mapping[str, Start]
    """The first one is ours."""
    goal: Goal | None


def rows_of(wanted: Wanted, names: set[str]) -> list[Row]:
    """Rows of the named cases."""
    rows = []
    for name, case in CASES.items():
        if name in names:
            rows += _rows(name, case, _turns(case, wanted))
    return rows


def _rows(name: str, case: Case, runs: Mapping[str, list[Run]]) -> list[Row]:
    (_, ours), *others = runs.items()
    against, theirs = others[0] if others else ("-", [])
    figures: list[tuple[str, Callable[[Run], float], Goal | None]] = [
        (f"{case.unit}/CPU s", lambda run: run.per_cpu_s, case.goal),
        (f"{case.unit}/s", lambda run: run.per_s, None),
    ]
    return [
        Row(name, case.name, unit, median(map(of, ours)), against, median(map(of, theirs)) if theirs else None,
            len(ours), goal if theirs else None)
        for unit, of, goal in figures
        if ours
    ]  # fmt: skip


def _turns(case: Case, wanted: Wanted) -> dict[str, list[Run]]:
    """Runs of all contenders in turns; one that can't be measured is left out by name."""
    runs: dict[str, list[Run]] = {name: [] for name in case.contenders}
    for _ in range(wanted.runs):
        for name, start in case.contenders.items():
            if name not in runs:
                continue
            try:
                run = measured(case, start, wanted.scaled(case.count))
            except (*FAILURES, pytest.skip.Exception) as failure:
                wanted.notes.append(f"NOT MEASURED, {case.name}, {name}: {failure}")
                tell(wanted.notes[-1])
                del runs[name]
                continue
            tell(f"{case.name}, {name}: {run}")
            runs[name].append(run)
    return runs


def measured(case: Case, start: Start, count: int) -> Run:
    """Publishes while a contender is subscribed, until it has everything."""
    with (
        scratch(NEEDED_BYTES) as directory,
        announced(directory / "scene", count, case.size_bytes) as scene,
        start(directory / "contender", scene) as reader,
    ):
        began_s, before_s = time.monotonic(), cpu_s(family(reader.pid))
        scene.publish()
        while (done := reader.done()) < count:
            if time.monotonic() - began_s > PATIENCE_S:
                raise RuntimeError(f"{done} of {count} {case.unit} after {PATIENCE_S:.0f} s")
            time.sleep(LOOK_S)
        took_s, spent_s = time.monotonic() - began_s, cpu_s(family(reader.pid)) - before_s
    return Run(count / spent_s, count / took_s)


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [one for child in (task / "children").read_text().split() for one in family(int(child))]
    return found


LOOK_S = 0.1
PATIENCE_S = 600.0
NEEDED_BYTES = 2_000_000_000
THREE_TIMES = Goal("ratio", ">=", 3)
FETCHING = {"downburst": hub_that_fetches, "wis2downloader 0.3.2": wis2downloader}
RECORDING = {"downburst": hub_that_records, "pywis-pubsub": pywis}
CASES: Mapping[str, Case] = {
    "files-2k": Case("files of 2 kB fetched, verified, stored", "files", 4_000, 2_000, FETCHING, THREE_TIMES),
    "files-85k": Case("files of 85 kB fetched, verified, stored", "files", 4_000, 85_000, FETCHING, THREE_TIMES),
    "notifications": Case("notifications judged and recorded", "notifications", 10_000, 10, RECORDING, None),
}
