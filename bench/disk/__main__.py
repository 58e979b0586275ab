"""`make bench-disk`: bytes, processor time and memory of the product on a real disk.

All files lie below a directory on a disk, never in memory. Rows 1 and 3 run the whole hub: products are uploaded by
HTTP, and one site on the loopback interface takes them by unicast, stores them in its log and writes them to files.
Row 2 runs hub and site in network namespaces, by lines, as bench-multicast does. Row 4 is the hub's node alone.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.disk import rows
from bench.disk.cases import FULL, Bench
from bench.harness import report
from bench.harness.command import chosen, kept
from bench.harness.disk import file_system

Case = Callable[[Bench], list[report.Row]]
CASES: Mapping[str, Case] = {"1": Bench.writing, "2": Bench.site_cpu, "3": Bench.giant, "4": Bench.durable}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON; 0 when it measured, whatever it found."""
    options = _options(arguments)
    kind = file_system(options.directory)
    if kind in IN_MEMORY:
        print(f"{options.directory} lies in memory ({kind}); name one on a disk with --directory", file=sys.stderr)
        return 2
    described = report.machine() | {"file_system": kind}
    with tempfile.TemporaryDirectory(prefix="downburst-bench-", dir=options.directory) as directory:
        amounts = FULL.times(options.scale)
        bench = Bench(Path(directory), options.runs, amounts, only_ours=options.only_ours)
        found = [row for wanted in dict.fromkeys(options.rows) for row in kept(bench, CASES[wanted])]
    described["load_1min_after"] = os.getloadavg()[0]
    scaled = [] if options.scale == 1 else [f"Amounts were multiplied by {options.scale}."]
    result = report.document("disk", described, found, [*NOTES, *scaled, *bench.notes])
    table = report.markdown(found) if options.markdown else report.table(found)
    print(table, *result["notes"], f"machine: {described}", sep="\n")
    if options.out:
        report.write(options.out, result)
    return 0 if found else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    listed = "\n".join(f"  {row:>2}  {title}" for row, title in rows.TITLES.items())
    parser = argparse.ArgumentParser(
        prog="bench.disk",
        description=__doc__,
        epilog=f"rows:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=_rows, default=list(CASES), help="which rows, as in 1,4 (default: all)")
    parser.add_argument("--runs", type=int, default=3, help="runs, of which the median counts (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="amounts, to try it out (default 1)")
    parser.add_argument("--only-ours", action="store_true", help="leave uftp out")
    on_disk = Path(tempfile.gettempdir())
    parser.add_argument("--directory", type=Path, default=on_disk, help=f"on the disk to measure (default {on_disk})")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args(arguments)


def _rows(text: str) -> list[str]:
    return chosen(text, CASES)


IN_MEMORY = ("tmpfs", "ramfs")
NOTES = (
    "Row 1: one product after the other. Bytes to the disk are write_bytes less cancelled_write_bytes of "
    "/proc/PID/io: pages made dirty, less those that were removed before they reached the disk. The device's count "
    "(after sync) includes the file system's own writes and those of everything else on the machine. uftp receives "
    "one file of the same total, in clear, without digests and without a log.",
    "Row 2: user and system time of the site's process; a leg of 2 Gb/s, or unicast. The hub shares its cores.",
    "Row 3: latency of a warning runs from the hub's log to that of the site. Growth is the most anonymous memory "
    "(RssAnon, five samples a second) above that before the upload; the peak is VmHWM, with mapped pages of files.",
    "Row 4: the node's lines with spool files that are written out before; beside it the same bytes in one file with "
    "reserved room, with a call of fdatasync for each group. 8 MiB are the node's largest group.",
)

if __name__ == "__main__":
    sys.exit(main())
