"""`make bench-unicast`: the product beside a raw sendfile fan-out, NATS and Kafka, in network namespaces.

Ours is encrypted, checks every digest, keeps each product in the site's own log, durable against kill -9, and sends
receipts; every run ends with kill -9 of the sites and a comparison of their logs with the hub's. The peers do less.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.harness import report
from bench.harness.command import chosen, kept
from bench.harness.scratch import scratch
from bench.unicast import rows
from bench.unicast.cases import FULL, Bench
from kit.capabilities import reasons

CASES: Mapping[str, Callable[[Bench], list[report.Row]]] = {
    "1": Bench.small,
    "2": Bench.middling,
    "3": Bench.large,
    "4": Bench.small,
    "5": Bench.scaling,
    "6": Bench.low_rate,
    "7": Bench.tail,
    "8": Bench.far,
    "9": Bench.crowd,
    "10": Bench.idle,
    "11": Bench.warnings,
    "12": Bench.outage,
}


def main() -> int:
    """Measure, print the table, write the JSON; 0 when it measured, whatever it found."""
    options = _options()
    if missing := _missing():
        print(f"The measurement can't run here: {missing}", file=sys.stderr)
        return 2
    described = report.machine()
    with scratch(NEEDED_BYTES) as directory:
        amounts = FULL.times(options.scale)
        bench = Bench(
            directory, options.runs, amounts, real_sites=options.real_sites, brokers=not options.without_brokers
        )
        measured = [row for case in _cases(options.rows) for row in kept(bench, case)]
    described["load_1min_after"] = os.getloadavg()[0]
    found = [row for row in measured if row.id in options.rows]
    found.sort(key=lambda row: int(row.id))
    scaled = [] if options.scale == 1 else [f"Lengths and counts were multiplied by {options.scale}."]
    result = report.document("unicast", described, found, [*NOTES, *scaled, *bench.notes])
    table = report.markdown(found) if options.markdown else report.table(found)
    print(table, *result["notes"], f"machine: {described}", sep="\n")
    if options.out:
        report.write(options.out, result)
    return 0 if found else 1


def _cases(wanted: Sequence[str]) -> list[Callable[[Bench], list[report.Row]]]:
    """The cases of these rows, each once."""
    return list(dict.fromkeys(CASES[row] for row in wanted))


def _options() -> argparse.Namespace:
    listed = "\n".join(f"  {row:>2}  {title}" for row, title in rows.TITLES.items())
    parser = argparse.ArgumentParser(
        prog="bench.unicast",
        description=__doc__,
        epilog=f"rows:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=_rows, default=list(CASES), help="which rows, as in 1,4,11 (default: all)")
    parser.add_argument(
        "--runs", type=int, default=3, help="runs of rows 1 to 6, of which the median counts (default 3)"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="lengths and counts, to try it out (default 1)")
    parser.add_argument(
        "--real-sites", action="store_true", help="rows 9 and 10 with a node and a log per site (10 GB)"
    )
    parser.add_argument("--without-brokers", action="store_true", help="leave NATS and Kafka out of rows 1 and 4")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args()


def _rows(text: str) -> list[str]:
    return chosen(text, CASES)


def _missing() -> str:
    found = reasons()
    needed = ("root", "netns", "veth", "bridge", "htb", "tun")
    return "; ".join(f"{name}: {found[name]}" for name in needed if found[name])


NEEDED_BYTES = 8_000_000_000
NOTES = (
    "Ours: TLS, digests, the site's own log, receipts; sites end by kill -9, then their logs are checked.",
    "Peers: in clear, without digests; NATS and Kafka consumers drop what they get, sendfile's write one file.",
    "LDM-6.14, measured elsewhere on two shared cores: 2 kB to 8 1,800 to 2,220/s each with 57 us a delivery; 100 kB "
    "336 to 460 MB/s; 5 MB 216 to 280 MB/s; 2 kB at 100/s to 4 sites 0.95 / 34 / 105 ms (median / p99 / worst); 30 s "
    "of silence after 15 of 78 bursts.",
    "Rows 9 and 10, unless --real-sites is given: the sites share a process and keep no logs; TLS, clocks, digests "
    "and receipts are real. Row 9: latency ends where a product is whole and checked, before a log would have it; "
    "the hub's raw receipts tell it, and must name each product of each site once.",
    "Row 11: the giant is what 100 Mb/s carry in 40 s, half of the gigabyte that is meant.",
    "Row 12: two hours at T2 are 786,000 products and 127 GB. Played at 10 times the mix's product rate with "
    "sizes / 20, 72 s away: a tenth of the products, a two-hundredth of the bytes.",
)

if __name__ == "__main__":
    sys.exit(main())
