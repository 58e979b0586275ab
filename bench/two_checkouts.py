"""`make bench-beside BEFORE=DIR`: the same measurement in two checkouts of the project, in turns.

    make bench-beside BEFORE=../before ARGS="--bench multicast --only-ours --rows 1,2 --runs 7"

Each turn runs `bench.NAME --runs 1` with the programs and packages of either checkout, which must be set up by
`make setup-bench` in it; the order changes from turn to turn. A figure is the median of its turns, and the ratio is
that of this checkout over the other. Options that this module does not know go to the measurement.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import report
from bench.harness.scratch import tell

HERE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Key:
    """A figure that both checkouts report under the same name."""

    row: str
    case: str
    unit: str


Turns = Mapping[Key, Sequence[float]]
"""The figures of a checkout by turn."""


def main() -> int:
    """Measures, prints the table and writes the JSON; 1 if the checkouts have no figure in common."""
    options, passed_on = _options()
    figures: dict[Path, dict[Key, list[float]]] = {options.before: {}, HERE: {}}
    described = report.machine()
    for turn in range(options.runs):
        for checkout in sorted(figures, reverse=bool(turn % 2)):
            for key, figure in measured(checkout, options.bench, passed_on).items():
                figures[checkout].setdefault(key, []).append(figure)
        tell(f"turn {turn + 1} of {options.runs}\n{report.table(rows(figures[HERE], figures[options.before]))}")
    described["load_1min_after"] = os.getloadavg()[0]
    compared = rows(figures[HERE], figures[options.before])
    print(report.table(compared), f"machine: {described}", sep="\n")
    if options.out:
        report.write(options.out, report.document(f"{options.bench}, two checkouts", described, compared))
    return 0 if compared else 1


def rows(now: Turns, before: Turns) -> list[report.Row]:
    """The figures that both checkouts have, with the medians of their turns."""
    return [
        report.Row(
            key.row, key.case, key.unit, report.median(figures), "before", report.median(before[key]), len(figures)
        )
        for key, figures in now.items()
        if key in before
    ]


def measured(checkout: Path, bench: str, passed_on: Sequence[str]) -> dict[Key, float]:
    """The figures of one turn; empty, with a message, if the measurement failed."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "result.json"
        command = [str(checkout / ".venv/bin/python"), "-m", f"bench.{bench}", "--runs", "1", "--out", str(out)]
        code = subprocess.call(
            [*command, *passed_on], cwd=checkout, env=_environment(checkout), stdout=subprocess.DEVNULL
        )
        if code or not out.exists():
            tell(f"{checkout}: the measurement failed with code {code}; this turn counts for nothing.")
            return {}
        return figures_of(json.loads(out.read_text()))


def _environment(checkout: Path) -> dict[str, str]:
    return os.environ | {
        "CARGO_TARGET_DIR": str(checkout / "workers" / "target"),
        "DOWNBURST_PROFILE": "release",
        "PYTHONPATH": f"{checkout}:{checkout / 'tests'}",
    }


def figures_of(result: Mapping[str, Any]) -> dict[Key, float]:
    """The product's own figures of a measurement's JSON; several peers of one case give the same figure."""
    return {Key(row["id"], row["case"], row["unit"]): row["ours"] for row in result["rows"]}


def _options() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="make bench-beside", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, metavar="DIR", help="the other checkout, built by `make setup-bench`")
    parser.add_argument("--bench", default="unicast", help="unicast, multicast, ldm … (default unicast)")
    parser.add_argument("--runs", type=int, default=7, help="turns of each checkout (default 7)")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    options, passed_on = parser.parse_known_args()
    options.before = options.before.resolve()
    if not (options.before / ".venv/bin/python").exists():
        parser.error(f"{options.before} is not set up; run `make setup-bench` there")
    if options.before == HERE:
        parser.error("DIR is this checkout; name another one")
    return options, passed_on


if __name__ == "__main__":
    sys.exit(main())
