"""From runs to rows: messages beside NATS, a recorded minute beside its queue, simulated crowds."""

from collections.abc import Callable, Sequence

from bench.harness.report import Goal, Row, median
from bench.multicast.busiest_minute import FASTER, USABLE_BPS, Tenfold, Waits
from bench.multicast.crowd import SimulatedCrowd
from bench.multicast.messages import Messages

NATS = "NATS"
_Both = tuple[Sequence[Messages], Sequence[Messages]]
"""Ours and the peer's."""


def rows_of_messages(ours: Sequence[Messages], nats: Sequence[Messages]) -> list[Row]:
    """Row 9."""
    no_worse = Goal("ratio", "<=", 1)
    return [
        _row(("9", "p50", "ms"), (ours, nats), lambda run: run.median_ms, no_worse),
        _row(("9", "p99", "ms"), (ours, nats), lambda run: run.p99_ms, no_worse),
        _row(("9", "worst", "ms"), (ours, nats), lambda run: run.worst_ms),
        _row(("9", "wire bytes per message byte", ""), (ours, nats), lambda run: run.wire_share, _SIXTH),
        _row(("9", "CPU per message at one site", "us"), (ours, nats), lambda run: run.cpu_us),
        _row(("9", "p50 of the intake before it", "ms"), (ours, ()), lambda run: run.intake_median_ms or 0.0),
    ]


def rows_of_lossy_messages(ours: Sequence[Messages], nats: Sequence[Messages]) -> list[Row]:
    """Row 10."""
    return [
        _row(("10", "1 % loss, p50", "ms"), (ours, nats), lambda run: run.median_ms),
        _row(("10", "1 % loss, p99", "ms"), (ours, nats), lambda run: run.p99_ms, Goal("ours", "<=", 20)),
        _row(("10", "1 % loss, worst", "ms"), (ours, nats), lambda run: run.worst_ms, Goal("ratio", "<=", 0.1)),
        _row(("10", "1 % loss, wire bytes per message byte", ""), (ours, nats), lambda run: run.wire_share),
    ]


def rows_of_minute(seconds: float, ideal: Waits, multicast: Waits, unicast: Waits | None) -> list[Row]:
    """Row 11."""
    case, queue = f"NGRID's busiest {seconds:.0f} s to 7", f"the queue at {USABLE_BPS / 1e6:.0f} Mb/s"
    goal = Goal("ratio", "<=", 1.25)
    rows = [
        Row("11", f"{case}: mean", "ms", multicast.mean_ms, queue, ideal.mean_ms, 1, goal),
        Row("11", f"{case}: p99", "ms", multicast.p99_ms, queue, ideal.p99_ms, 1, goal),
    ]
    if unicast is None:
        return rows
    return [
        *rows,
        Row("11", f"{case}: mean", "ms", multicast.mean_ms, "ours by unicast", unicast.mean_ms, 1),
        Row("11", f"{case}: p99", "ms", multicast.p99_ms, "ours by unicast", unicast.p99_ms, 1),
    ]


def rows_of_tenfold(seconds: float, found: Sequence[Tenfold]) -> list[Row]:
    """Row 13."""
    case = f"NGRID's busiest {seconds * FASTER:.0f} s at {FASTER} times the rate to 8, a busy loop beside"

    def row(what: str, unit: str, figure: float, most: float) -> Row:
        return Row("13", f"{case}: {what}", unit, figure, "-", None, len(found), Goal("ours", "<=", most))

    return [
        row("bytes sent per byte that came", "", median(run.sent_share for run in found), 1.15),
        row("p99", "ms", median(run.p99_ms for run in found), 1_000),
    ]


def rows_of_crowd(found: SimulatedCrowd) -> list[Row]:
    """Row 12, from the output of the simulator."""

    def row(case: str, unit: str, value: float, most: float) -> Row:
        return Row("12", f"500 simulated receivers, {case}", unit, value, "-", None, 1, Goal("ours", "<=", most))

    return [
        row("1 % independent loss: repair share", "% of products", found.repair_percent, 3),
        row("a loss that all share: requests at the sender", "", found.requests_per_loss, 10),
        row("a loss that all share: repairs of each packet", "", found.repairs_per_loss, 1),
    ]


def _row(
    row: tuple[str, str, str], runs: _Both, figure: Callable[[Messages], float], goal: Goal | None = None
) -> Row:
    (number, case, unit), (ours, nats) = row, runs
    theirs = median(map(figure, nats)) if nats else None
    against = NATS if nats else "-"
    return Row(number, f"2 kB to 7: {case}", unit, median(map(figure, ours)), against, theirs, len(ours), goal)


_SIXTH = Goal("ratio", "<=", 1 / 6)
