"""The time of this machine over that of the reference machine of the time budgets, for the same work.

    scripts/pace.py FILE            measures a fixed piece of work every ten seconds, a line each, until it is ended;
                                    --every SECONDS instead
    scripts/pace.py --of FILE       prints the factor of the measurements so far: 1 at least, with two decimals

A machine that others share does the same work in 18 minutes on one day and in 33 on another, so a budget in its
seconds judges its other users. The piece is measured while the tests run, in processor time of its own thread: the
tests' own load counts as on the reference machine, and what other users take shows. Time that the hypervisor gave to
others altogether (`steal` in /proc/stat) adds to it.
"""

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from statistics import median

REFERENCE_S = 0.027
"""Processor time of the piece on the reference machine while `make test` runs: two cores of a shared server on which
`make test` of November 2026 takes 19 minutes and `make test-all` 24."""
EVERY_S = 10.0
MOST = 2.5
"""A machine that is slower still is no place to judge a budget, and the run may as well say so."""


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", action="store_true", help="print the factor of the measurements in the file")
    parser.add_argument("--every", type=float, default=EVERY_S, metavar="SECONDS", help="between two measurements")
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    if given.of:
        print(f"{factor(given.file.read_text() if given.file.exists() else ''):.2f}")
    else:
        measure(given.file, given.every)


def measure(file: Path, every_s: float) -> None:
    """Appends lines: processor seconds of the piece, and the share of time stolen since the last line."""
    before = processor_ticks(Path("/proc/stat").read_text())
    while True:
        time.sleep(every_s)
        now = processor_ticks(Path("/proc/stat").read_text())
        with file.open("a") as lines:
            lines.write(f"{piece_s():.4f} {stolen_share(before, now):.4f}\n")
        before = now


def factor(lines: str) -> float:
    """The median of the measurements against the reference; 1 without any, and for a faster machine."""
    found = [tuple(map(float, line.split())) for line in lines.splitlines()]
    if not found:
        return 1.0
    return min(max(median(took_s / (1 - stolen) for took_s, stolen in found) / REFERENCE_S, 1.0), MOST)


def piece_s() -> float:
    """Processor seconds of the fixed work: text, dictionaries, sorting and a digest, in megabytes of memory."""
    began = time.thread_time()
    rows = [{"number": number, "name": f"product-{number * 7919 % 10007}"} for number in range(12_000)]
    rows.sort(key=lambda row: str(row["name"]))
    text = json.dumps(rows)
    json.loads(text)
    hashlib.sha256(text.encode() * 8).digest()
    return time.thread_time() - began


def processor_ticks(stat: str) -> tuple[int, int]:
    """All ticks of /proc/stat's first line, and those that the hypervisor gave to others."""
    ticks = [int(field) for field in stat.splitlines()[0].split()[1:9]]
    return sum(ticks), ticks[7]


def stolen_share(before: tuple[int, int], now: tuple[int, int]) -> float:
    """Between two readings; nine tenths at most, so that it can be divided by the rest."""
    passed, stolen = now[0] - before[0], now[1] - before[1]
    return min(stolen / passed, 0.9) if passed > 0 and stolen > 0 else 0.0


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
