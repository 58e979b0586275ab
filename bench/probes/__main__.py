"""Probes of paths, measured: the knee, loss below it, delays, steadiness, and the cost to products.

`python -m bench.probes --out file.json`. All rows need root. A row beside a wire that lagged, and one for which the
node or a peer is missing, is left out by name with the reason. `--quick` shortens the soak and the windows.
"""

import argparse
from pathlib import Path

from bench.harness.report import Row, document, machine, table, write
from bench.probes.rows import MEASURES, Wanted, rows_of
from kit.capabilities import reasons

NETWORK_NEEDS = ("root", "netns", "veth", "bridge", "tun", "htb", "vxlan")


def main() -> None:
    """Measures, prints the table and writes the file."""
    parser = argparse.ArgumentParser(prog="bench.probes", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--runs", type=int, default=3, help="runs of each row; its figure is their median")
    parser.add_argument("--rows", default="", help="measure these groups alone: " + ",".join(MEASURES))
    parser.add_argument("--quick", action="store_true", help="a soak of 20 s and short windows; for a first look")
    given = parser.parse_args()
    described = machine()
    only = {name for name in given.rows.split(",") if name} or set(MEASURES)
    found = reasons()
    missing = [f"{name}: {found[name]}" for name in NETWORK_NEEDS if found[name]]
    if missing:
        rows, notes = list[Row](), [f"all rows were left out, because this machine can't: {'; '.join(missing)}"]
    else:
        chosen = {name: measure for name, measure in MEASURES.items() if name in only}
        rows, notes = rows_of(chosen, Wanted(given.runs, given.quick))
    print(table(rows), *notes, sep="\n")
    if given.out:
        write(given.out, document("probes", described, rows, notes))


if __name__ == "__main__":
    main()
