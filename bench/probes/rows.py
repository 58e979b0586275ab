"""Rows of probes, each with its goal."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.harness.report import Goal, Row, median
from bench.harness.scratch import scratch, tell
from bench.harness.turns import FAILURES
from bench.probes import peer, tcp
from bench.probes.path import DELAY_MS, LANE, WIRE_BPS, M, MissingError, probed, wired
from kit.probe_soaks import SOAK_BPS, soaks_beside_flows
from kit.probe_trials import FAST_LANE, OBJECTIVE_MS, STEADY, beside_probes, end_for_late_products
from kit.probed_hub import probed_hub
from kit.stamp import reflector, sent
from kit.wire import Lane

BYTES = 500_000_000
SWEEP = [{"rate_bps": rate * M, "duration_ms": 1_000} for rate in (5, 10, 20, 30, 50, 80)]


@dataclass(frozen=True)
class Wanted:
    """The extent of the measurement."""

    runs: int
    quick: bool
    notes: list[str] = field(default_factory=list)
    """Rows that were left out, and why."""

    @property
    def soak_s(self) -> float:
        """The length of a soak."""
        return 20.0 if self.quick else 120.0

    @property
    def windows(self) -> tuple[int, float]:
        """The number of probes beside products, and the seconds of each."""
        return (3, 2.0) if self.quick else (10, 5.0)


Measure = Callable[[Path, Wanted], list[Row]]
"""Measures a group of rows in a directory."""


def rows_of(measures: Mapping[str, Measure], wanted: Wanted) -> tuple[list[Row], list[str]]:
    """All rows, and notes on those that were left out."""
    rows, notes = list[Row](), wanted.notes
    for name, measure in measures.items():
        try:
            found = _second_try(name, measure, wanted, notes)
        except (*FAILURES, pytest.skip.Exception) as failure:
            notes.append(f"NOT MEASURED, {name}: {_reason(failure)}")
            tell(notes[-1])
            continue
        rows += found
        for row in found:
            tell(f"{row}")
    return rows, notes


def _second_try(name: str, measure: Measure, wanted: Wanted, notes: list[str]) -> list[Row]:
    """Repeats a failed measurement once, and notes it, unless a program or an ability of the node is missing."""
    try:
        with scratch(BYTES) as directory:
            return measure(directory, wanted)
    except MissingError:
        raise
    except FAILURES as failure:
        notes.append(f"{name} failed and was repeated: {_reason(failure)}")
        tell(notes[-1])
        with scratch(BYTES) as directory:
            return measure(directory, wanted)


def _reason(failure: BaseException) -> str:
    return str(failure) or type(failure).__name__


def _knees(directory: Path, wanted: Wanted) -> list[Row]:
    """Knee, and loss below it, in both directions."""
    rows = []
    for direction in ("out", "in"):
        knees, losses = [], []
        for run in range(wanted.runs):
            with wired(directory / f"{direction}-{run}") as path:
                ended = probed(path, "sweep", kind="knee", direction=direction, steps=SWEEP)
            if ended["knee_bps"] is None or ended["knee_reason"]:
                raise RuntimeError(f"no confirmed knee {direction}: {ended['knee_reason']}")
            knees.append(ended["knee_bps"] / M)
            below = [step for step in ended["steps"] if step["rate_bps"] < 0.95 * WIRE_BPS]
            losses.append(max(100 * step["lost"] / step["sent"] for step in below))
        goals = Goal("ratio", "1 +-", 0.05), Goal("ours", "<=", 0.1)
        case = f"knee of a wire, {direction}"
        rows.append(Row(f"1 {direction}", case, "Mb/s", median(knees), "wire", WIRE_BPS / M, wanted.runs, goals[0]))
        case = f"most loss of a rate below the knee, {direction}"
        rows.append(Row(f"2 {direction}", case, "%", median(losses), "", None, wanted.runs, goals[1]))
    return rows


def _constant(directory: Path, wanted: Wanted) -> list[Row]:
    """Delay and jitter of UDP at a constant rate."""
    delays, jitters = [], []
    for run in range(wanted.runs):
        with wired(directory / str(run)) as path:
            ended = probed(
                path, "cbr", kind="cbr", direction="out", steps=[{"rate_bps": 8 * M, "duration_ms": 4_000}]
            )
        (step,) = ended["steps"]
        if step["delay_us"] is None:
            raise RuntimeError("the offset of the clocks was not known")
        delays.append(step["delay_us"]["median"] / 1e3)
        jitters.append(step["jitter_us"] / 1e3)
    case = "constant rate of 8 Mb/s by UDP: one-way delay, median"
    return [
        Row("4", case, "ms", median(delays), "wire", DELAY_MS, wanted.runs, Goal("ratio", "1 +-", 0.1)),
        Row("5", "the same: jitter (RFC 3550)", "ms", median(jitters), "", None, wanted.runs),
    ]


def _soaks(directory: Path, wanted: Wanted) -> list[Row]:
    """Steadiness on a circuit and beside greedy flows, by both transports; one run, as each is long."""
    return _soak(directory / "tcp", wanted, "tcp", ("9", "10")) + _soak(
        directory / "udp", wanted, "udp", ("9b", "10b")
    )


def _soak(directory: Path, wanted: Wanted, transport: str, numbers: tuple[str, str]) -> list[Row]:
    directory.mkdir(parents=True)
    with ExitStack() as stack:
        found = soaks_beside_flows(directory, stack, seconds=wanted.soak_s, transport=transport)
    sent_percent = 100 * found.circuit.sent_variation
    if sent_percent > MOST_SENT_VARIATION_PERCENT:
        raise RuntimeError(f"the sender's own rate varied by {sent_percent:.1f} %: machine too busy to judge")
    rate = f"{wanted.soak_s:.0f} s at {SOAK_BPS / M:.0f} Mb/s by {transport.upper()}"
    case = f"soak of {rate} on a circuit: variation of the 1 s rate"
    circuit, routed = 100 * found.circuit.variation, 100 * found.routed.variation
    # Datagrams lose the share by which the flows overshoot, which is their own matter; a TCP connection gives way.
    beside = Goal("ours", ">=", 10) if transport == "tcp" else None
    return [
        Row(numbers[0], case, "%", circuit, "routed", routed, 1, Goal("ours", "<=", 3)),
        Row(numbers[1], "the same beside greedy flows on the routed path", "%", routed, "", None, 1, beside),
    ]


def _products(directory: Path, wanted: Wanted) -> list[Row]:
    """The time of products beside probes within the free rate."""
    probes, window_s = wanted.windows
    with probed_hub(directory, FAST_LANE, congestion=STEADY) as scene:
        scene.add_ports(100 * M)
        found = beside_probes(scene, probes=probes, window_s=window_s)
        scene.wire.stop().needs_small_lag()
    case = f"p99 of products beside {probes} probes of 40 Mb/s on 100 Mb/s, windows of {window_s:.0f} s, by {STEADY}"
    times = found.probed.p99_s * 1e3, found.free.p99_s * 1e3
    return [Row("11", case, "ms", times[0], "without", times[1], probes, Goal("ratio", "<=", 1.1))]


def _late(directory: Path, wanted: Wanted) -> list[Row]:
    """The end of a probe for late products."""
    lane = Lane(rate_bps=WIRE_BPS, delay_ms=DELAY_MS, buffer_bytes=60_000)
    with probed_hub(directory, lane, objective_ms=OBJECTIVE_MS) as scene:
        found = [end_for_late_products(scene, rate_bps=30 * M, product_bytes=20 * M) for _ in range(wanted.runs)]
        scene.wire.stop().needs_small_lag(max_lag_us=20_000)
    known, late = (median(one.since_report_s for one in found), median(one.since_late_s for one in found))
    case = "a probe of 30 Mb/s beside a late product: its end, after the hub knew"
    return [
        Row("12", case, "s", known, "", None, wanted.runs, Goal("ours", "<=", 1)),
        Row(
            "13",
            f"the same, after the product missed its objective of {OBJECTIVE_MS} ms",
            "s",
            late,
            "",
            None,
            wanted.runs,
        ),
    ]


def _stamp(directory: Path, wanted: Wanted) -> list[Row]:
    """STAMP over the same wire."""
    found = [round_trip_ms(directory / str(run), LANE) for run in range(wanted.runs)]
    goal = Goal("ratio", "1 +-", 0.1)
    return [Row("14", "STAMP: round trip, median", "ms", median(found), "wire", 2 * DELAY_MS, wanted.runs, goal)]


def round_trip_ms(directory: Path, lane: Lane) -> float:
    """The median round trip by STAMP over a wire with this lane in both directions."""
    with wired(directory, lane, lane) as path:
        lab, address = path.lab, path.wire.right_address
        with reflector(f"{address}:0", inside=lambda argv: lab.command("far", argv)) as listens:
            report = sent(listens, "--count", 100, "--interval-ms", 10, inside=lambda argv: lab.command("hub", argv))
    return float(report["round_trip_ns"]["median"]) / 1e6


MOST_SENT_VARIATION_PERCENT = 2.0
MEASURES: Mapping[str, Measure] = {
    "knee": _knees,
    "iperf3": lambda directory, wanted: peer.iperf3_rows(directory, wanted.runs),
    "cbr": _constant,
    "tcp": lambda directory, wanted: tcp.recovery_rows(directory, wanted.runs),
    "stacks": lambda directory, wanted: tcp.stacks_rows(directory, 3.0 if wanted.quick else 10.0, wanted.notes),
    "soak": _soaks,
    "products": _products,
    "late": _late,
    "stamp": _stamp,
}
