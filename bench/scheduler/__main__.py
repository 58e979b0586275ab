"""The scheduler, measured: what a planning round costs, and how right its predictions are.

`python -m bench.scheduler --out file.json`; rows come in groups, of which `--rows` runs some. A group is a function
in a file of its own that is given the wishes of the command line; one that makes namespaces needs root and says so.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bench.harness.report import Row, document, machine, table, write
from bench.scheduler.planning import planning_rows
from bench.scheduler.prediction_rows import prediction_rows
from bench.scheduler.wishes import Wanted

GROUPS: Mapping[str, Callable[[Wanted], Iterable[Row]]] = {
    "planning": planning_rows,
    "predictions": prediction_rows,
}
"""Row groups by the name that `--rows` takes, in the order in which they run."""


def main() -> None:
    """Measures, prints the table and writes the file."""
    parser = argparse.ArgumentParser(
        prog="bench.scheduler", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--rows", default=",".join(GROUPS), help=f"groups to run, of {', '.join(GROUPS)}")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stretch", type=float, default=600.0, help="seconds that each prediction is played for")
    given = parser.parse_args()
    unknown = [name for name in given.rows.split(",") if name not in GROUPS]
    if unknown:
        parser.error(f"there is no group {unknown[0]!r}; the groups are {', '.join(GROUPS)}")
    described = machine()
    wanted = Wanted(runs=given.runs, seed=given.seed, stretch_s=given.stretch)
    rows = [row for name in given.rows.split(",") for row in GROUPS[name](wanted)]
    print(table(rows), *wanted.notes, sep="\n")
    if given.out:
        write(given.out, document("scheduler", described, rows, [f"seed {given.seed}", *wanted.notes]))


if __name__ == "__main__":
    main()
