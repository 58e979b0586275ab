"""Circuits, measured: admission among ten thousand, what they keep beside greedy flows, what shaping saves.

`python -m bench.circuits --out file.json`. Admission needs no privilege and no node; the machine's own arithmetic
stands in for a peer there: a brute force that sums up every reservation of a port at each edge inside the window. The
rest needs root and is left out loudly without.
"""

import argparse
from pathlib import Path

from bench.circuits.admission import calendar_rows, desk_row
from bench.circuits.desk import desk_rows
from bench.circuits.month import month_row
from bench.circuits.network import network_rows
from bench.harness.report import document, machine, table, write
from kit.capabilities import reasons

NETWORK_NEEDS = ("root", "netns", "veth", "bridge", "htb", "vxlan", "tun")


def main() -> None:
    """Measures, prints the table and writes the file."""
    parser = argparse.ArgumentParser(prog="bench.circuits", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    described = machine()
    rows = [*calendar_rows(wanted.seed, wanted.runs), desk_row(wanted.seed, wanted.runs)]
    rows += [*desk_rows(wanted.seed, wanted.runs), month_row(wanted.seed, wanted.runs)]
    notes = [f"seed {wanted.seed}"]
    found = reasons()
    missing = [f"{name}: {found[name]}" for name in NETWORK_NEEDS if found[name]]
    if missing:
        notes.append(f"rows 4 to 13 were left out, because this machine can't: {'; '.join(missing)}")
    else:
        more, failed = network_rows(wanted.runs)
        rows, notes = rows + more, notes + failed
    print(table(rows), *notes, sep="\n")
    if wanted.out:
        write(wanted.out, document("circuits", described, rows, notes))


if __name__ == "__main__":
    main()
