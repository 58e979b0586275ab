"""From runs to rows: the twelve figures of unicast delivery, the peers of each, and their goals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench.harness.fan_out import FanOut
from bench.harness.report import Goal, Row, median
from bench.unicast.far import Far
from bench.unicast.live import Latency, Scaling, Tail
from bench.unicast.many import Crowd, Idle
from bench.unicast.outage import Outage

OURS, LIVE, SENDFILE = "downburst", "downburst, live", "raw sendfile fan-out"
Runs = Mapping[str, Sequence[FanOut]]
"""Runs by the name of the contender."""
T = TypeVar("T")

TITLES = {
    "1": "2 kB products to 8 sites: products per second to each",
    "2": "100 kB products to 8 sites: MB/s together",
    "3": "5 MB products to 8 sites: MB/s together",
    "4": "2 kB products to 8 sites: CPU per delivery (measured with row 1)",
    "5": "CPU per delivery at 8 sites over that at 1, at a fixed rate",
    "6": "latency of 2 kB at 100/s to 4 sites",
    "7": "worst silence of a site with pending products in 200 bursts",
    "8": "CONDUIT's peak minute over 70 ms, 0.01 % loss, 100 Mb/s",
    "9": "570 live sessions at 109 products/s, sizes / 20",
    "10": "1,000 idle connected sites",
    "11": "warnings while a large product is in flight at 100 Mb/s",
    "12": "one site away for two hours of the 2024 IDD mix, scaled",
}


def rows_of_small(runs: Runs) -> list[Row]:
    """Rows 1 and 4: the product beside every peer, and its own live burst."""
    rate = _Figure(lambda run: run.products_per_s, "products/s each", Goal("ours", ">=", 20_000))
    cpu = _Figure(lambda run: run.cpu_us_per_delivery, "us", Goal("ours", "<=", 6))
    peers = [name for name in runs if name not in {OURS, LIVE}]
    rows = []
    for row, case, figure in (("1", "2 kB to 8", rate), ("4", "CPU per delivery, 2 kB to 8", cpu)):
        rows += [figure.row(row, f"{case}, catch-up", runs, peer) for peer in peers]
        live = _of(runs[LIVE], figure.of)
        rows.append(Row(row, f"{case}, live burst", figure.unit, live, "-", None, len(runs[LIVE])))
    return rows


def rows_of_large(row: str, size: str, runs: Runs) -> list[Row]:
    """Rows 2 and 3."""
    together = _Figure(lambda run: run.together_mbps, "MB/s", Goal("ratio", ">=", 0.6))
    cpu = _Figure(lambda run: run.cpu_us_per_delivery, "us")
    return [
        together.row(row, f"{size} to 8, all together", runs, SENDFILE),
        cpu.row(row, f"{size} to 8, CPU per delivery", runs, SENDFILE),
    ]


def rows_of_scaling(per_s: float, runs: Sequence[Scaling]) -> list[Row]:
    """Row 5: the cost that sites add, without the cost of taking products in."""
    at_many = _of(runs, lambda run: run.per_delivery_us(many=True))
    at_one = _of(runs, lambda run: run.per_delivery_us(many=False))
    intake = _of(runs, lambda run: run.none_s * 1e6 / run.products)
    case = f"CPU per delivery at {runs[0].sites} sites, 2 kB at {per_s:,.0f}/s"
    return [
        Row("5", case, "us", at_many, "1 site", at_one, len(runs), Goal("ratio", "<=", 1.2)),
        Row("5", "CPU per product taken in, no site", "us", intake, "-", None, len(runs)),
    ]


def rows_of_low_rate(runs: Sequence[Latency]) -> list[Row]:
    """Row 6."""
    case = "2 kB at 100/s to 4 sites"
    late_ms = _of(runs, lambda run: run.source_late_worst_ms)
    return [
        _latency_row("6", f"{case}, median", runs, lambda run: run.median_ms, 0.7),
        _latency_row("6", f"{case}, p99", runs, lambda run: run.p99_ms, 5),
        Row(
            *("6", f"{case}, worst", "ms", _of(runs, lambda run: run.worst_ms), "source's worst delay", late_ms),
            *(len(runs), Goal("ours", "<=", 30)),
        ),
    ]


def rows_of_tail(bursts: int, runs: Sequence[Tail]) -> list[Row]:
    """Row 7: the worst of all runs, not the middle one, since a median hides the tail."""
    silence, probe = max(run.silence_ms for run in runs), max(run.probe_ms for run in runs)
    case = f"{bursts} bursts to 4 sites: longest silence with products pending"
    return [Row("7", case, "ms", silence, "idle probe's worst delay", probe, len(runs), Goal("ours", "<=", 100))]


def rows_of_far(seconds: float, runs: Sequence[Far]) -> list[Row]:
    """Row 8."""
    case = f"CONDUIT's peak, {seconds:.0f} s over 70 ms, 0.01 % loss, 100 Mb/s"
    against = "one TCP stream, no hub"
    median_ms = (_of(runs, lambda run: run.ours.median_ms), against, _of(runs, lambda run: run.one_stream.median_ms))
    p99_ms = (_of(runs, lambda run: run.ours.p99_ms), against, _of(runs, lambda run: run.one_stream.p99_ms))
    return [
        Row("8", f"{case}, median", "ms", *median_ms, len(runs)),
        Row("8", f"{case}, p99", "ms", *p99_ms, len(runs), Goal("ours", "<=", 1_000)),
    ]


def rows_of_crowd(runs: Sequence[Crowd]) -> list[Row]:
    """Row 9."""
    case = f"{runs[0].sites} live sessions, {_of(runs, lambda run: run.deliveries_per_s):,.0f} deliveries/s"
    cores = _of(runs, lambda run: run.hub_cores)
    return [
        Row(
            "9",
            f"{case}, p99",
            "ms",
            _of(runs, lambda run: run.p99_ms),
            "-",
            None,
            len(runs),
            Goal("ours", "<=", 100),
        ),
        Row("9", f"{case}, hub's CPU", "cores", cores, "-", None, len(runs), Goal("ours", "<=", 1)),
    ]


def rows_of_idle(runs: Sequence[Idle]) -> list[Row]:
    """Row 10."""
    case = f"{runs[0].sites:,} idle connected sites"
    percent, kilobytes = _of(runs, lambda run: run.cpu_percent), _of(runs, lambda run: run.bytes_per_site / 1000)
    return [
        Row("10", f"{case}, hub's CPU", "% of a core", percent, "-", None, len(runs), Goal("ours", "<=", 1)),
        Row("10", f"{case}, hub's memory", "kB each", kilobytes, "-", None, len(runs), Goal("ours", "<=", 50)),
    ]


def rows_of_warnings(seconds: float, runs: Sequence[Latency]) -> list[Row]:
    """Row 11."""
    case = f"warnings beside a product of {seconds:.0f} s at 100 Mb/s"
    return [
        _latency_row("11", f"{case}, median", runs, lambda run: run.median_ms),
        _latency_row("11", f"{case}, p99", runs, lambda run: run.p99_ms, 50),
    ]


def rows_of_outage(runs: Sequence[Outage]) -> list[Row]:
    """Row 12. A site that stays incomplete fails its run, so that no row hides it."""
    missed = _of(runs, lambda run: run.missed)
    case = f"site back after {missed:,.0f} missed products (all arrived, once)"
    live_ms, caught_up_s = _of(runs, lambda run: run.live_after_ms), _of(runs, lambda run: run.caught_up_s)
    during = _of(runs, lambda run: run.others_during_ms)
    before = _of(runs, lambda run: run.others_before_ms)
    return [
        Row(
            "12", f"{case}, first live product after", "ms", live_ms, "-", None, len(runs), Goal("ours", "<=", 1_000)
        ),
        Row("12", f"{case}, caught up after", "s", caught_up_s, "-", None, len(runs)),
        Row(
            "12",
            "the others' live p95 meanwhile",
            "ms",
            during,
            "before",
            before,
            len(runs),
            Goal("ratio", "<=", 1.1),
        ),
    ]


@dataclass(frozen=True)
class _Figure:
    """A figure of a fan-out, with its unit and its goal."""

    of: Callable[[FanOut], float]
    unit: str
    goal: Goal | None = None

    def row(self, row: str, case: str, runs: Runs, peer: str) -> Row:
        ours, theirs = _of(runs[OURS], self.of), _of(runs[peer], self.of)
        return Row(row, case, self.unit, ours, peer, theirs, len(runs[OURS]), self.goal)


def _latency_row(
    row: str, case: str, runs: Sequence[Latency], figure: Callable[[Latency], float], limit_ms: float | None = None
) -> Row:
    goal = None if limit_ms is None else Goal("ours", "<=", limit_ms)
    return Row(row, case, "ms", _of(runs, figure), "-", None, len(runs), goal)


def _of(runs: Sequence[T], figure: Callable[[T], float]) -> float:
    return median(map(figure, runs))
