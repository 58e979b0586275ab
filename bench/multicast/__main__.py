"""`make bench-multicast`: the product beside UFTP, UDPcast, NORM, TCP fan-outs, NATS and a bare blaster.

Ours is encrypted, checks every digest, stores in the logs of hub and sites, and writes files; the peers do less.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.harness import report
from bench.harness.command import chosen, kept
from bench.harness.scratch import scratch
from bench.multicast import rows
from bench.multicast.cases import FULL, Bench
from kit.capabilities import reasons

Case = Callable[[Bench], list[report.Row]]
CASES: Mapping[str, Case] = {
    "1": Bench.fast,
    "2": Bench.fast,
    "3": Bench.gigabit,
    "4": Bench.losses,
    "5": Bench.twenty,
    "6": Bench.one_slow,
    "7": Bench.narrow,
    "8": Bench.busy,
    "9": Bench.messages,
    "10": Bench.lossy_messages,
    "11": Bench.busiest_minute,
    "12": Bench.crowd,
    "13": Bench.tenfold,
    "14": Bench.small_buffers,
}


def main() -> int:
    """Measure, print the table, write the JSON; 0 when it measured, whatever it found."""
    options = _options()
    if missing := _missing():
        print(f"The measurement can't run here: {missing}", file=sys.stderr)
        return 2
    described = report.machine()
    with scratch(NEEDED_BYTES) as directory:
        bench = Bench(directory, options.runs, FULL.times(options.scale), only_ours=options.only_ours)
        found = [row for case in cases(options.rows) for row in kept(bench, case) if row.id in options.rows]
    described["load_1min_after"] = os.getloadavg()[0]
    found.sort(key=lambda row: int(row.id))
    scaled = [] if options.scale == 1 else [f"Lengths and counts were multiplied by {options.scale}."]
    result = report.document("multicast", described, found, [*NOTES, *scaled, *bench.notes])
    table = report.markdown(found) if options.markdown else report.table(found)
    print(table, *result["notes"], f"machine: {described}", sep="\n")
    if options.out:
        report.write(options.out, result)
    return 0 if found else 1


def cases(wanted: Sequence[str]) -> list[Case]:
    """The cases of these rows, each once."""
    return list(dict.fromkeys(CASES[row] for row in wanted))


def _options() -> argparse.Namespace:
    listed = "\n".join(f"  {row:>2}  {title}" for row, title in rows.TITLES.items())
    parser = argparse.ArgumentParser(
        prog="bench.multicast",
        description=__doc__,
        epilog=f"rows:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=_rows, default=list(CASES), help="which rows, as in 1,4,11 (default: all)")
    parser.add_argument("--runs", type=int, default=2, help="runs of each contender, of which the median counts")
    parser.add_argument("--scale", type=float, default=1.0, help="lengths and counts, to try it out (default 1)")
    parser.add_argument("--only-ours", action="store_true", help="leave the peers out where the goal does without")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args()


def _rows(text: str) -> list[str]:
    return chosen(text, CASES)


def _missing() -> str:
    found = reasons()
    needed = ("root", "netns", "veth", "bridge", "nft-numgen", "htb")
    return "; ".join(f"{name}: {found[name]}" for name in needed if found[name])


NEEDED_BYTES = 9_000_000_000
NOTES = (
    "Ours: AES-256-GCM, digests, the logs of hub and sites, files (rows 9 to 11: logs without files).",
    "Blaster: trains of datagrams without repair, into buffers that hold the whole file, written to files; 'AEAD and "
    "hash' encrypts each datagram and hashes the file as well. UFTP, UDPcast, NORM: in clear, without digests.",
    "TLS fan-out: a connection per site, AES-256-GCM, BLAKE3 on both sides. Sendfile fan-out: in clear, no digests.",
)

if __name__ == "__main__":
    sys.exit(main())
