"""Paths, measured: what connections and TCP profiles gain on a long one, and what it costs to watch them.

`python -m bench.paths --out file.json`. The forecasts need no privilege; the rest needs root and is left out loudly
without. The wires run in real time where the system allows it, and a run beside a late wire is left out by name.
"""

import argparse
from pathlib import Path

from bench.harness.report import document, machine, table, write
from bench.paths.rows import FORECASTS, NETWORK, rows_of
from kit.capabilities import reasons

NETWORK_NEEDS = ("root", "netns", "veth", "bridge", "tun")


def main() -> None:
    """Measures, prints the table and writes the file."""
    parser = argparse.ArgumentParser(prog="bench.paths", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", default="", help="measure these alone, as in 1,3")
    wanted = parser.parse_args()
    described = machine()
    only = {name for name in wanted.rows.split(",") if name}
    notes: list[str] = []
    found = reasons()
    missing = [f"{name}: {found[name]}" for name in NETWORK_NEEDS if found[name]]
    measured = dict(FORECASTS) if missing else NETWORK | FORECASTS
    if missing:
        notes.append(f"rows {', '.join(NETWORK)} were left out, because this machine can't: {'; '.join(missing)}")
    rows, failed = rows_of({name: row for name, row in measured.items() if not only or name in only}, wanted.runs)
    notes += failed
    print(table(rows), *notes, sep="\n")
    if wanted.out:
        write(wanted.out, document("paths", described, rows, notes))


if __name__ == "__main__":
    main()
