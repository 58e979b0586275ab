"""`make bench-unicast`: the product beside a raw sendfile fan-out, NATS and Kafka, in network namespaces.

Ours is encrypted, checks every digest, keeps each product in the site's own log, durable against kill -9, and sends
receipts; every run ends with kill -9 of the sites and a comparison of their logs with the hub's. The peers do less.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench import far, live, many, report
from bench import unicast_rows as rows
from bench.catch_up import CatchUp, LiveBurst
from bench.delivery import HUB
from bench.fan_out import FanOut, FanOutContender, Stream
from bench.kafka_peer import install_kafka
from bench.nats_peer import install_nats
from bench.outage import Outage, Phases, outage
from bench.scratch import scratch, tell
from bench.sendfile_peer import Sendfile
from kit.capabilities import reasons
from kit.namespaces import Lab

T = TypeVar("T")


def main() -> int:
    """Measure, print the table, write the JSON; 0 when it measured, whatever it found."""
    options = _options()
    if missing := _missing():
        print(f"The measurement can't run here: {missing}", file=sys.stderr)
        return 2
    described = report.machine()
    with scratch(NEEDED_BYTES) as directory:
        bench = Bench(directory, options.runs, FULL.times(options.scale), real_sites=options.real_sites)
        measured = [row for case in _cases(options.rows) for row in _kept(bench, case)]
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


@dataclass(frozen=True)
class Amounts:
    """How much each case does."""

    small_products: int
    middling_products: int
    large_products: int
    seconds: float
    """Of schedules that are short."""
    long_seconds: float
    """Of schedules that need many products, or time."""
    bursts: int
    outage: Phases
    crowd_sites: int
    idle_sites: int

    def times(self, scale: float) -> "Amounts":
        """As much of everything, but never nothing."""

        def some(count: int) -> int:
            return max(1, round(count * scale))

        phases = Phases(self.outage.before_s * scale, self.outage.away_s * scale, self.outage.after_s * scale)
        return Amounts(
            small_products=some(self.small_products),
            middling_products=some(self.middling_products),
            large_products=some(self.large_products),
            seconds=self.seconds * scale,
            long_seconds=self.long_seconds * scale,
            bursts=some(self.bursts),
            outage=phases,
            crowd_sites=some(self.crowd_sites),
            idle_sites=some(self.idle_sites),
        )


class Bench:
    """The cases. Contenders take turns, every run starts its processes afresh in a directory of its own."""

    def __init__(self, directory: Path, runs: int, amounts: Amounts, *, real_sites: bool = False) -> None:
        self._directory, self._runs, self._amounts, self._real_sites = directory, runs, amounts, real_sites
        self.notes: list[str] = []

    def small(self) -> list[report.Row]:
        """Rows 1 and 4."""
        contenders: list[FanOutContender] = [CatchUp(), LiveBurst(), Sendfile()]
        contenders += install_nats(self.notes)
        contenders += install_kafka(self.notes)
        stream = Stream(self._amounts.small_products, SMALL_BYTES)
        return rows.rows_of_small(self._take_turns("2 kB to 8", contenders, stream))

    def middling(self) -> list[report.Row]:
        """Row 2."""
        stream = Stream(self._amounts.middling_products, 100_000)
        return rows.rows_of_large("2", "100 kB", self._take_turns("100 kB to 8", [CatchUp(), Sendfile()], stream))

    def large(self) -> list[report.Row]:
        """Row 3."""
        stream = Stream(self._amounts.large_products, 5_000_000)
        return rows.rows_of_large("3", "5 MB", self._take_turns("5 MB to 8", [CatchUp(), Sendfile()], stream))

    def scaling(self) -> list[report.Row]:
        """Row 5."""

        def run(directory: Path) -> live.Scaling:
            with _lab(8) as lab:
                return live.scaling(lab, directory, per_s=FIXED_PER_S, seconds=self._amounts.seconds)

        return rows.rows_of_scaling(FIXED_PER_S, self._repeat("CPU per delivery by sites", run, self._runs))

    def low_rate(self) -> list[report.Row]:
        """Row 6."""

        def run(directory: Path) -> live.Latency:
            with _lab(4) as lab:
                return live.low_rate(lab, directory, seconds=2 * self._amounts.seconds)

        return rows.rows_of_low_rate(self._repeat("latency at 100/s", run, self._runs))

    def tail(self) -> list[report.Row]:
        """Row 7."""

        def run(directory: Path) -> live.Tail:
            with _lab(4) as lab:
                return live.tail_of_bursts(lab, directory, count=self._amounts.bursts)

        return rows.rows_of_tail(self._amounts.bursts, self._repeat("tails of bursts", run))

    def far(self) -> list[report.Row]:
        """Row 8."""
        seconds = self._amounts.long_seconds
        runs = self._repeat("a model feed over 70 ms", lambda directory: far.model_feed(directory, seconds=seconds))
        lag_ms = max(run.wire_lag_p99_ms for run in runs)
        self.notes.append(f"Row 8: the wire in user space was {lag_ms:.2f} ms late (p99); above 1 ms don't judge it.")
        return rows.rows_of_far(seconds, runs)

    def crowd(self) -> list[report.Row]:
        """Row 9."""

        def run(directory: Path) -> many.Crowd:
            with _lab(1) as lab:
                sites, seconds = self._amounts.crowd_sites, self._amounts.long_seconds
                return many.crowd(lab, directory, sites=sites, seconds=seconds, real=self._real_sites)

        return rows.rows_of_crowd(self._repeat("live sessions", run))

    def idle(self) -> list[report.Row]:
        """Row 10."""

        def run(directory: Path) -> many.Idle:
            with _lab(1) as lab:
                amounts = self._amounts
                seconds, real = 2 * amounts.seconds, self._real_sites
                return many.idle(lab, directory, sites=amounts.idle_sites, seconds=seconds, real=real)

        return rows.rows_of_idle(self._repeat("idle sites", run))

    def warnings(self) -> list[report.Row]:
        """Row 11."""
        seconds = 4 * self._amounts.seconds

        def run(directory: Path) -> live.Latency:
            with Lab((HUB, far.SITE)) as lab:
                return far.warnings_beside_giant(lab, directory, seconds=seconds)

        return rows.rows_of_warnings(seconds, self._repeat("warnings beside a giant", run))

    def outage(self) -> list[report.Row]:
        """Row 12."""

        def run(directory: Path) -> Outage:
            with _lab(8) as lab:
                return outage(lab, directory, self._amounts.outage, rate=OUTAGE_RATE, size=OUTAGE_SIZE)

        return rows.rows_of_outage(self._repeat("an outage", run))

    def _take_turns(self, case: str, contenders: Sequence[FanOutContender], stream: Stream) -> rows.Runs:
        runs: dict[str, list[FanOut]] = {contender.name: [] for contender in contenders}
        with _lab(8) as lab:
            for _ in range(self._runs):
                for contender in contenders:
                    run = self._second_try(
                        f"{case}: {contender.name}", partial(contender.fan_out, lab, stream=stream)
                    )
                    runs[contender.name].append(run)
                    figures = f"{run.products_per_s:,.0f}/s each, {run.together_mbps:,.0f} MB/s together"
                    tell(f"{case}: {contender.name} {figures}, {run.cpu_us_per_delivery:.1f} us a delivery")
        return runs

    def _repeat(self, case: str, run: Callable[[Path], T], times: int = 1) -> list[T]:
        """Run a case so often; those that take a minute hold thousands of products in one run."""
        runs = []
        for _ in range(times):
            runs.append(self._second_try(case, run))
            tell(f"{case}: {runs[-1]}")
        return runs

    def _second_try(self, what: str, run: Callable[[Path], T]) -> T:
        """Repeat a run that failed, once, and note it: a failure is a finding and no reason to lose the rest."""
        try:
            return self._in_directory(run)
        except FAILURES as failure:
            self.notes.append(f"{what} failed and was repeated: {failure}")
            tell(self.notes[-1])
            return self._in_directory(run)

    def _in_directory(self, run: Callable[[Path], T]) -> T:
        with tempfile.TemporaryDirectory(dir=self._directory) as directory:
            return run(Path(directory))


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


def _cases(chosen: Sequence[str]) -> list[Callable[[Bench], list[report.Row]]]:
    """The cases of these rows, each once."""
    return list(dict.fromkeys(CASES[row] for row in chosen))


def _kept(bench: Bench, case: Callable[[Bench], list[report.Row]]) -> list[report.Row]:
    """Rows of a case; one that fails is noted, since the others are worth having."""
    try:
        return case(bench)
    except FAILURES as failure:
        bench.notes.append(f"NOT MEASURED, {case.__doc__} {failure}")
        tell(bench.notes[-1])
        return []


def _lab(sites: int) -> Lab:
    """Hosts whose links keep bundles of segments whole, as offloading interfaces do."""
    return Lab((HUB, *(f"site{number}" for number in range(sites))), segments=False)


def _options() -> argparse.Namespace:
    listed = "\n".join(f"  {row:>2}  {title}" for row, title in rows.TITLES.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"rows:\n{listed}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=_rows, default=list(CASES), help="which rows, as in 1,4,11 (default: all)")
    parser.add_argument(
        "--runs", type=int, default=3, help="runs of rows 1 to 6, of which the median counts (default 3)"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="lengths and counts, to try it out (default 1)")
    parser.add_argument(
        "--real-sites", action="store_true", help="rows 9 and 10 with a node and a log per site (10 GB)"
    )
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args()


def _rows(text: str) -> list[str]:
    chosen = [row.strip() for row in text.split(",")]
    if unknown := [row for row in chosen if row not in CASES]:
        raise argparse.ArgumentTypeError(f"there is no row {', '.join(unknown)}; there are {', '.join(CASES)}")
    return chosen


def _missing() -> str:
    found = reasons()
    needed = ("root", "netns", "veth", "bridge", "htb", "tun")
    return "; ".join(f"{name}: {found[name]}" for name in needed if found[name])


FAILURES = (AssertionError, RuntimeError, OSError, subprocess.SubprocessError)
SMALL_BYTES = 2_000
FIXED_PER_S = 10_000
NEEDED_BYTES = 8_000_000_000
OUTAGE_RATE, OUTAGE_SIZE = 10.0, 0.05
FULL = Amounts(
    small_products=100_000,
    middling_products=3_000,
    large_products=60,
    seconds=10,
    long_seconds=60,
    bursts=200,
    outage=Phases(before_s=20, away_s=72, after_s=30),
    crowd_sites=570,
    idle_sites=1_000,
)
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
