"""Rows of long paths: tuned and parallel TCP, depots, the tracer, forecasts."""

from dataclasses import replace
from pathlib import Path

from bench.harness.report import Goal, Row, median
from bench.paths.rows import FORECASTS, LOSSY
from bench.paths.watching import tracer_share
from bench.seeds.measures.group import WIRES, Group, Wanted
from bench.seeds.models import edge_gain, parallel_gain, split_gain, window_gain
from downburst.domain.tcp.rates import CongestionControl
from kit.path_trials import LINE_BPS, LongPath, TwoSegments, rate_over_edge, rate_with, rate_with_buffer

M = 1_000_000


def parallel(directory: Path, wanted: Wanted) -> list[Row]:
    """70 ms and 0.1 % loss: one Reno connection, four of them, and one of BBR, in turns."""
    rates: dict[tuple[str, int], list[float]] = {("reno", 1): [], ("reno", 4): [], ("bbr", 1): []}
    for run in range(wanted.runs):
        for (congestion, count), found in rates.items():
            place = directory / f"{run}-{congestion}-{count}"
            found.append(
                rate_with(place, LOSSY, congestion=congestion, connections=count, seconds=_seconds(wanted)) / M
            )
    one, four, tuned = (median(found) for found in rates.values())
    case, model = "100 Mb/s, 70 ms, 0.1 % loss", parallel_gain(4)
    gain, double = f"{case}: 4 Reno connections over one", Goal("ours", ">=", 2)
    return [
        Row("B1", gain, "times", four / one, "-", None, wanted.runs, double),
        Row("T3", gain, "times", four / one, "model", model, wanted.runs, Goal("ratio", "1 +-", 0.4)),
        Row("T2", f"{case}: BBR over Reno", "times", tuned / one, "Net100", 74 / 28, wanted.runs, _AT_LEAST),
    ]


def windows(directory: Path, wanted: Wanted) -> list[Row]:
    """80 ms without loss: a send buffer of 100 kB by a TCP profile, and that of the kernel, in turns."""
    path = LongPath(round_trip_ms=80)
    rates: dict[int | None, list[float]] = {None: [], UNTUNED_BYTES: []}
    for run in range(wanted.runs):
        for size, found in rates.items():
            place = directory / f"{run}-{size}"
            found.append(rate_with_buffer(place, path, send_buffer_bytes=size, seconds=_seconds(wanted)))
    gain = median(rates[None]) / median(rates[UNTUNED_BYTES])
    case, model = "100 Mb/s, 80 ms: the kernel's buffers over 100 kB", window_gain(UNTUNED_BYTES)
    return [Row("T1", case, "times", gain, "model", model, wanted.runs, Goal("ratio", "1 +-", 0.4))]


def depots(directory: Path, wanted: Wanted) -> list[Row]:
    """A relay before a lossy edge of 2 ms, behind a clean core of 68 ms, and the path without it, in turns."""
    rows = []
    for name, congestion in (("R3", "reno"), ("R4", "cubic"), ("R5", "bbr")):
        rates: dict[bool, list[float]] = {True: [], False: []}
        for run in range(wanted.runs):
            for relayed, found in rates.items():
                place, seconds = directory / f"{name}-{run}-{relayed}", _seconds(wanted)
                rate_bps = rate_over_edge(
                    place, congestion=congestion, relayed=relayed, connections=1, seconds=seconds
                )
                found.append(rate_bps / M)
        with_relay, without = median(rates[True]), median(rates[False])
        rows += _of_depot(name, congestion, with_relay, without, wanted.runs)
    return rows


def halves(directory: Path, wanted: Wanted) -> list[Row]:
    """Reno over two halves with 0.05 % loss each, with a relay between them and without, in turns."""
    half = LongPath(round_trip_ms=35, loss=0.0005)
    rates: dict[str | None, list[float]] = {"reno": [], None: []}
    for run in range(wanted.runs):
        for relay, found in rates.items():
            path, place = TwoSegments(half, half, relay), directory / f"{run}-{relay}"
            found.append(rate_with(place, path, congestion="reno", connections=1, seconds=_seconds(wanted)))
    gain = median(rates["reno"]) / median(rates[None])
    case = "two halves of 35 ms and 0.05 % loss, Reno: by a relay over without"
    return [
        Row("W17", case, "times", gain, "model, at most", split_gain(), wanted.runs, Goal("ratio", "<=", 1.2)),
        Row("W17", case, "times", gain, "field, at least", 1.3, wanted.runs, _AT_LEAST),
    ]


def readings(directory: Path, wanted: Wanted) -> list[Row]:
    """Ten readings a second of a hundred busy connections."""
    found = [tracer_share(directory / str(run), sites=100, seconds=_seconds(wanted)) for run in range(wanted.runs)]
    case = "ten readings a second of 100 busy connections: share of a processor"
    return [Row("T6", case, "%", 100 * median(found), "-", None, wanted.runs, Goal("ours", "<=", 1))]


def forecasts(directory: Path, wanted: Wanted) -> list[Row]:
    """The fused forecast on recorded rates."""
    return [replace(FORECASTS["11"]("11", directory, wanted.runs), id="T8")]


def _of_depot(name: str, congestion: str, with_relay: float, without: float, runs: int) -> list[Row]:
    case = f"68 ms clean, 2 ms with 0.1 % loss, {congestion}"
    gain, model = with_relay / without, edge_gain(CongestionControl(congestion))
    rows = [Row(name, f"{case}: by a relay over without", "times", gain, "model", model, runs, GAINS[congestion])]
    if congestion == "bbr":
        share = with_relay * M / LINE_BPS
        rows.append(Row("R6", f"{case}: session over the line", "", share, "-", None, runs, Goal("ours", ">=", 0.8)))
    if congestion == "reno":
        rows.append(Row("R2", f"{case}: by a relay over without", "times", gain, "Phoebus", 2.0, runs, _AT_LEAST))
    return rows


def _seconds(wanted: Wanted) -> float:
    return float(wanted.of(5, 10))


UNTUNED_BYTES = 100_000
_AT_LEAST = Goal("ratio", ">=", 1.0)
GAINS = {"reno": Goal("ratio", "1 +-", 0.4), "cubic": Goal("ratio", "1 +-", 0.4), "bbr": Goal("ours", "1 +-", 0.1)}
"""Loss-based controls gain as the model has it; BBR does not."""
GROUPS = {
    "parallel": Group(("B1", "T2", "T3"), parallel, WIRES),
    "windows": Group(("T1",), windows, WIRES),
    "depots": Group(("R2", "R3", "R4", "R5", "R6"), depots, WIRES),
    "halves": Group(("W17",), halves, WIRES),
    "readings": Group(("T6",), readings),
    "forecasts": Group(("T8",), forecasts),
}
