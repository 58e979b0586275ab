"""Rows of circuits on real kernels: the rates that they keep, the gain of shaping, and the time of set-up."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from bench.harness.report import Goal, Row, median
from bench.harness.scratch import tell
from bench.harness.turns import FAILURES
from kit.circuit_bed import Bed
from kit.circuit_hub import CircuitHub, Shown
from kit.circuit_trials import (
    Beside,
    Crowded,
    SmallBuffer,
    feed_schedule,
    latency_beside,
    multicast_beside,
    small_buffer,
    unicast_beside,
)
from kit.namespaces import Lab
from kit.wire import Lane

LINE_BPS, RATE_BPS, FLOWS = 100_000_000, 60_000_000, 8
BESIDE = f"60 Mb/s circuit beside {FLOWS} greedy TCP flows on a line of 100 Mb/s"
# 2.8 per cent of the bytes in flight at this rate: the loss that made DYNES slow.
SMALL = Lane(rate_bps=50_000_000, delay_ms=36, buffer_bytes=12_600)


def network_rows(runs: int) -> tuple[list[Row], list[str]]:
    """All rows, about four minutes with three runs, and notes on failed measurements; needs root."""
    trials: tuple[Callable[[Path, ExitStack, int], list[Row]], ...] = (
        _unicast,
        _multicast,
        _cubic,
        _bbr,
        _latency,
        _provisioning,
        _moments,
    )
    rows, notes = [], []
    for trial in trials:
        try:
            with _place() as (directory, stack):
                rows += trial(directory, stack, runs)
        except (*FAILURES, pytest.skip.Exception) as failure:
            notes.append(f"NOT MEASURED, {trial.__doc__} {failure}")
            tell(notes[-1])
    return rows, notes


@contextmanager
def _place() -> Iterator[tuple[Path, ExitStack]]:
    with tempfile.TemporaryDirectory(prefix="downburst-bench-") as directory, ExitStack() as stack:
        yield Path(directory), stack


def _unicast(directory: Path, stack: ExitStack, runs: int) -> list[Row]:
    """Rows 4 and 5."""
    crowded = Crowded(directory, stack, line_bps=LINE_BPS, rate_bps=RATE_BPS)
    found = unicast_beside(crowded, flows=FLOWS, rounds=runs, size=20_000_000)
    shares = (found.protected_bps / RATE_BPS, found.exposed_bps / RATE_BPS)
    what = f"{BESIDE}: products by TCP"
    return [
        Row("4", what, "of its rate", shares[0], "not protected", shares[1], runs, Goal("ours", ">=", 0.75)),
        _others("5", what, found, runs),
    ]


def _multicast(directory: Path, stack: ExitStack, runs: int) -> list[Row]:
    """Row 6."""
    crowded = Crowded(directory, stack, line_bps=LINE_BPS, rate_bps=RATE_BPS)
    found = multicast_beside(crowded, flows=FLOWS, rounds=runs, seconds=2)
    what = f"{BESIDE}: frames of a multicast leg"
    goal = Goal("ours", ">=", 0.95)
    return [Row("6", what, "of its rate", found.protected_bps / RATE_BPS, "", None, runs, goal)]


def _others(name: str, what: str, found: Beside, runs: int) -> Row:
    goal = Goal("ours", ">=", (LINE_BPS - RATE_BPS) / 2e6)
    return Row(name, f"{what}: what the flows keep", "Mb/s", found.others_bps / 1e6, "", None, runs, goal)


def _cubic(directory: Path, stack: ExitStack, runs: int) -> list[Row]:
    """Row 7."""
    found = _through_small_buffer(directory, stack, runs, "cubic")
    what = "50 Mb/s, 72 ms, buffer 2.8 % of the product: CUBIC on a circuit shaped to 0.9"
    rates = (found.shaped_bps / 1e6, found.unshaped_bps / 1e6)
    return [Row("7", what, "Mb/s", rates[0], "unshaped", rates[1], runs, Goal("ratio", ">=", 1.5))]


def _bbr(directory: Path, stack: ExitStack, runs: int) -> list[Row]:
    """Row 8."""
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if "bbr" not in known:
        raise RuntimeError("the kernel has no bbr; modprobe tcp_bbr")
    found = _through_small_buffer(directory, stack, runs, "bbr")
    what = "the same: segments that BBR sent again"
    again = (found.shaped_sent_again, found.unshaped_sent_again)
    return [Row("8", what, "segments", again[0], "unshaped", again[1], runs, Goal("ratio", "<=", 0.2))]


def _through_small_buffer(directory: Path, stack: ExitStack, runs: int, control: str) -> SmallBuffer:
    return small_buffer(directory, stack, line=SMALL, control=control, rounds=runs, seconds=6)


def _latency(directory: Path, stack: ExitStack, _runs: int) -> list[Row]:
    """Rows 9 and 10."""
    crowded = Crowded(directory, stack, line_bps=LINE_BPS, rate_bps=RATE_BPS)
    schedule = feed_schedule(1, seconds=20, mean_bps=0.4 * RATE_BPS, mean_bytes=240_000)
    found = latency_beside(crowded, flows=FLOWS, schedule=schedule)
    what = f"{BESIDE}: {len(schedule)} products at 0.4 of it, 99th percentile"
    p99 = (found.measured_s * 1e3, found.predicted_s * 1e3)
    return [
        Row("9", what, "ms", p99[0], "backlog recursion", p99[1], 1, Goal("ratio", "<=", 1.2)),
        Row(
            "10",
            "the same beside a third of it on the routed path",
            "ms",
            p99[0],
            "routed",
            found.routed_s * 1e3,
            1,
        ),
    ]


def _provisioning(directory: Path, stack: ExitStack, runs: int) -> list[Row]:
    """Row 11."""
    lab = stack.enter_context(Lab(["hub", "far"]))
    bed = Bed(lab, directory, stack, rate_bps=RATE_BPS)
    took_ms = []
    for _ in range(10 * runs):
        took_ms.append(bed.up()["took_ms"])
        bed.hub.do("circuit-down", lease=17)
    what = "both ends of a circuit by the linux driver: median"
    return [Row("11", what, "ms", median(took_ms), "", None, len(took_ms), Goal("ours", "<=", 250))]


def _moments(directory: Path, stack: ExitStack, runs: int) -> list[Row]:
    """Rows 12 and 13."""
    lab = stack.enter_context(Lab(["hub", "far"]))
    hub = CircuitHub(lab, directory, stack, port_bps=1_000_000_000)
    begun, ended = [], []
    for _ in range(runs):
        number = hub.reserve(1_000_000, begin="+1.5s", end="+3s")["circuit"]
        over = hub.wait_state(number, "ended")
        begun.append(_late_s(over, "provisioning", "begin"))
        ended.append(_late_s(over, "ending", "end"))
    goal = Goal("ours", "<=", 1.0)
    return [
        Row("12", "begin of a window: the most it fired late", "s", max(begun), "", None, runs, goal),
        Row("13", "end of a window: the most it fired late", "s", max(ended), "", None, runs, goal),
    ]


def _late_s(shown: Shown, state: str, moment: str) -> float:
    at = next(event["at"] for event in shown["events"] if event["state"] == state)
    return (datetime.fromisoformat(at) - datetime.fromisoformat(shown[moment])).total_seconds()
