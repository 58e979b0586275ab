"""The waits of people: every question about latency and volume over thirty days, on both databases, and the pages.

`python -m bench.people --out file.json`. A hundred sites take fifteen feeds; each question goes through the whole
application, without a network. The history is written as roll-ups leave it (`bench.people.history` says how), the
last hour as batches bring it. The pages are measured by `bench.pages`, if a browser is there.
"""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

from bench.harness.report import document, machine, table, write
from bench.people.history import Case
from bench.people.questions import measured


def main() -> None:
    """Measures, prints the table and writes the file."""
    parser = argparse.ArgumentParser(
        prog="bench.people", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--runs", type=int, default=20, help="how often each question is asked")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--feeds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--databases", default="SQLite,PostgreSQL")
    given = parser.parse_args()
    case, described, notes = Case(given.sites, given.feeds, given.days), machine(), [f"seed {given.seed}"]
    rows = []
    for database in given.databases.split(","):
        rows += measured(database, case, given.seed, given.runs, notes)
    print(table(rows), *notes, sep="\n")
    if given.out:
        write(given.out, document("people", described, rows, notes))
    _pages(given.out)


def _pages(out: Path | None) -> None:
    """Measures the pages as well, where that is there to be run."""
    if importlib.util.find_spec("bench.pages") is None:
        print("the pages are not measured: there is no bench.pages")
        return
    beside = [] if out is None else ["--out", str(out.with_name(f"{out.stem}-pages{out.suffix}"))]
    subprocess.run([sys.executable, "-m", "bench.pages", *beside], check=True)


if __name__ == "__main__":
    main()
