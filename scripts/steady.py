"""Runs tests again and again, alone and beside busy processes, and reports each failure: the search for flaky tests.

`scripts/steady.py --alone 30 --beside 10 tests/system/test_kill.py tests/system/test_why.py::test_one`

A test is run on its own, not the whole file, so that no earlier test helps or harms it. Results are added to
`--results` (JSON lines) as they come; a second call with the same file does the runs that are missing. The output of
each failed run is kept beside it. The exit code is 1 if a run failed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CONDITIONS = ("alone", "beside")
LOOP = "while True: pass"
LIMIT_S = 900.0
"""A test that takes longer hangs."""


def main() -> int:
    """Collects the tests, does the runs that are missing, and prints a table."""
    options = _options()
    # The busy loops end with this process, however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = Results(options.results)
    wanted = {"alone": options.alone, "beside": options.beside}
    tests = collected(options.tests, options.marks)
    for condition in CONDITIONS:
        with busy(options.loops if condition == "beside" else 0):
            _rounds(tests, condition, wanted[condition], results)
    print(results.table(tests))
    return 1 if results.failures(tests) else 0


def collected(tests: list[str], marks: str) -> list[str]:
    """The names of all tests that pytest finds there, one for each parameter."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", marks, "-p", "no:cacheprovider", *tests]
    found = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    names = [line for line in found.stdout.splitlines() if "::" in line]
    if not names:
        sys.exit(f"pytest finds no tests at {', '.join(tests)}: {found.stdout}{found.stderr}")
    return names


def _rounds(tests: list[str], condition: str, wanted: int, results: "Results") -> None:
    """One run of each test after another, so that a slow quarter of an hour is shared by all."""
    for number in range(wanted):
        for test in tests:
            if results.count(test, condition) > number:
                continue
            ran = run(test, results.folder / f"{len(results.rows):05}-{condition}.log")
            results.add({"test": test, "condition": condition, **ran})
            print(f"{condition} {number + 1}/{wanted} {ran['outcome']} {ran['seconds']:6.1f} s  {test}", flush=True)


def run(test: str, log: Path) -> dict[str, Any]:
    """One run: `outcome` is passed, skipped or failed. The log of a run that failed stays."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", test]
    with log.open("w") as out:
        try:
            code = subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, timeout=LIMIT_S, check=False).returncode
        except subprocess.TimeoutExpired:
            code = -1
    outcome = "failed" if code else "skipped" if "1 skipped" in log.read_text(errors="replace") else "passed"
    if outcome == "failed":
        print(f"       {log}")
    else:
        log.unlink()
    return {"outcome": outcome, "seconds": round(time.monotonic() - began, 1), "load": round(os.getloadavg()[0], 2)}


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that do nothing but take processor time."""
    running = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


class Results:
    """All runs so far, in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        """Reads what an earlier call left; the folder beside it holds the output of failed runs."""
        self._path = path
        self.folder = path.with_suffix("")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            self.rows = [json.loads(line) for line in path.read_text().splitlines()]

    def add(self, row: dict[str, Any]) -> None:
        """Keeps one run."""
        self.rows.append(row)
        with self._path.open("a") as out:
            out.write(json.dumps(row) + "\n")

    def count(self, test: str, condition: str) -> int:
        """How often this test ran so."""
        return sum(1 for row in self.rows if (row["test"], row["condition"]) == (test, condition))

    def failures(self, tests: list[str]) -> int:
        """How many runs of these tests failed."""
        return sum(1 for row in self.rows if row["test"] in tests and row["outcome"] == "failed")

    def table(self, tests: list[str]) -> str:
        """A line for each test and condition: outcomes and the median of seconds."""
        lines = []
        for test in tests:
            for condition in CONDITIONS:
                rows = [row for row in self.rows if (row["test"], row["condition"]) == (test, condition)]
                if rows:
                    outcomes = Counter(row["outcome"] for row in rows)
                    counted = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
                    lines.append(f"{condition:7}{median(row['seconds'] for row in rows):7.1f} s  {counted:24}{test}")
        return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n", maxsplit=1)[0],
        epilog="example: scripts/steady.py --alone 30 --beside 10 tests/system/test_kill.py",
    )
    parser.add_argument("tests", nargs="+", help="files, folders or single tests, as pytest takes them")
    parser.add_argument("--alone", type=int, default=30, help="runs with nothing beside (30)")
    parser.add_argument("--beside", type=int, default=10, help="runs beside busy loops (10)")
    parser.add_argument("--loops", type=int, default=2, help="the number of busy loops (2)")
    parser.add_argument("--marks", default="not nightly", help='the tests by markers ("not nightly")')
    default = ROOT / ".cache" / "steady.jsonl"
    parser.add_argument("--results", type=Path, default=default, help="JSON lines, continued (.cache/steady.jsonl)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
