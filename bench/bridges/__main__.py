"""`make bench-bridges`: files and notifications of WIS2, beside wis2downloader and pywis-pubsub.

Each run starts its contender, a broker (mosquitto) and a web server (nginx) afresh, in memory; contenders take turns
and figures are medians. CPU seconds are those of all processes of a contender, from the first publication until the
last file is stored: of a hub those of its Python process and its node. Broker and web server do not count.
"""

import argparse
from pathlib import Path

from bench.bridges.rows import CASES, Wanted, rows_of
from bench.harness import command
from bench.harness.report import document, machine, markdown, table, write


def main() -> None:
    """Measures, prints the table and writes the file."""
    parser = argparse.ArgumentParser(prog="bench.bridges", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    parser.add_argument("--runs", type=int, default=3, help="runs of each contender; its figure is their median")
    parser.add_argument("--rows", default=list(CASES), type=lambda text: command.chosen(text, CASES))
    parser.add_argument("--quick", action="store_true", help="a tenth of the files; for a first look")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    described, wanted = machine(), Wanted(given.runs, given.quick)
    rows = rows_of(wanted, set(given.rows))
    print(markdown(rows) if given.markdown else table(rows), *wanted.notes, f"machine: {described}", sep="\n")
    if given.out:
        write(given.out, document("bridges", described, rows, [*wanted.notes, NOTE]))


NOTE = "wis2downloader verifies length and digest as well; it acknowledges before that, and keeps no record."

if __name__ == "__main__":
    main()
