"""Rows of paths, each with its goal."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from bench.harness.report import Goal, Row, median
from bench.harness.scratch import scratch, tell
from bench.harness.turns import FAILURES
from bench.paths.watching import tracer_share
from kit.judged_forecasts import FUSED, RECORDINGS, best_of, judged, mean_error_bps
from kit.path_trials import LongPath, learned, rate_over_edge, rate_with, windows_until_taken_back
from kit.relay_trials import copies_of_a_campus, latencies_over_the_relay

Measure = Callable[[str, Path, int], Row]
"""Measures a row: its number, a directory, and the number of runs."""

LOSSY = LongPath(round_trip_ms=70, loss=0.001)
FAR = LongPath(round_trip_ms=80, loss=0.0001)
SECONDS = 10.0
BYTES = 2_000_000_000
"""Room for the logs of a hub and a site."""


def rows_of(measures: Mapping[str, Measure], runs: int) -> tuple[list[Row], list[str]]:
    """All rows, and notes on failed measurements."""
    rows, notes = [], []
    for name, measure in measures.items():
        try:
            with scratch(BYTES) as directory:
                rows.append(measure(name, directory, runs))
                tell(f"{rows[-1]}")
        except (*FAILURES, pytest.skip.Exception) as failure:
            notes.append(f"NOT MEASURED, row {name}: {failure}")
            tell(notes[-1])
    return rows, notes


def _connections(congestion: str, goal: Goal, name: str, directory: Path, runs: int) -> Row:
    """Eight connections and one, in turns."""
    rates: dict[int, list[float]] = {8: [], 1: []}
    for run in range(runs):
        for connections, found in rates.items():
            place = directory / f"{run}-{connections}"
            found.append(
                rate_with(place, LOSSY, congestion=congestion, connections=connections, seconds=SECONDS) / 1e6
            )
    case = f"100 Mb/s, 70 ms, 0.1 % loss, {congestion}: eight connections"
    return Row(name, case, "Mb/s", median(rates[8]), "one", median(rates[1]), runs, goal)


def _relayed(congestion: str, connections: int, goal: Goal | None, name: str, directory: Path, runs: int) -> Row:
    """By a relay and without one, in turns; without one, by this number of connections."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    for run in range(runs):
        for relayed, found in rates.items():
            place, count = directory / f"{run}-{relayed}", 1 if relayed else connections
            rate_bps = rate_over_edge(
                place, congestion=congestion, relayed=relayed, connections=count, seconds=SECONDS
            )
            found.append(rate_bps / 1e6)
    case = f"100 Mb/s, 68 ms clean and 2 ms with 0.1 % loss, {congestion}: one connection by a relay"
    against = "one without" if connections == 1 else f"{connections} without"
    return Row(name, case, "Mb/s", median(rates[True]), against, median(rates[False]), runs, goal)


def _learned(default: str, name: str, directory: Path, runs: int) -> Row:
    found = [learned(directory / str(run), FAR, congestion=default, seconds=2 * SECONDS) for run in range(runs)]
    longest_s = max(one.took_s for one in found)
    case = (
        f"100 Mb/s, 80 ms, 0.01 % loss, one connection: profile learned in {longest_s:.0f} s ({found[-1].congestion})"
    )
    after, before = (median(one.after_bps for one in found) / 1e6, median(one.before_bps for one in found) / 1e6)
    return Row(name, case, "Mb/s", after, default, before, runs, Goal("ratio", ">=", 2.0))


def _taken_back(name: str, directory: Path, runs: int) -> Row:
    found = [windows_until_taken_back(directory / str(run), FAR, congestion="bbr") for run in range(runs)]
    case = "a profile that halves the rate: windows before it is taken back, at most"
    return Row(name, case, "windows", max(found), "", None, runs, Goal("ours", "<=", 2.0))


def _tracer(name: str, directory: Path, runs: int) -> Row:
    found = [tracer_share(directory / str(run), sites=100, seconds=SECONDS) for run in range(runs)]
    case = "ten looks a second at a hundred busy connections: share of a processor"
    return Row(name, case, "%", 100 * median(found), "", None, runs, Goal("ours", "<=", 1.0))


def _fan_out(fan_out: str, name: str, directory: Path, runs: int) -> Row:
    """By a relay and without one, in turns."""
    copies: dict[str | None, list[float]] = {fan_out: [], None: []}
    for run in range(runs):
        for manner, found in copies.items():
            found.append(copies_of_a_campus(directory / f"{run}-{manner}", fan_out=manner))
    case = f"four sites behind a relay that hands one copy out by {fan_out}: copies that leave the hub"
    ours, theirs = median(copies[fan_out]), median(copies[None])
    return Row(name, case, "copies", ours, "without it", theirs, runs, Goal("ours", "<=", 1.3))


def _way(name: str, directory: Path, runs: int) -> Row:
    found = [latencies_over_the_relay(directory / str(run)) for run in range(runs)]
    case = "a feed led over a relay by the scheduler, 68 ms clean and 2 ms with 0.1 % loss, reno: measured p50"
    measured, predicted = (median(one.measured_ms for one in found), median(one.predicted_ms for one in found))
    return Row(name, case, "ms", measured, "predicted", predicted, runs, Goal("ratio", "1 +-", 0.2))


def _forecast(name: str, _directory: Path, _runs: int) -> Row:
    """The recording on which the fused forecast does worst beside the best single predictor."""
    worst = max(RECORDINGS, key=_error_ratio)
    errors = judged(worst)
    best = best_of(errors)
    ours, theirs = (mean_error_bps(errors, one) / 1e6 for one in (FUSED, best))
    case = f"mean error of the fused forecast on recorded rates, worst recording ({worst})"
    return Row(name, case, "Mb/s", ours, best, theirs, 1, Goal("ratio", "<=", 1.05))


def _error_ratio(recording: str) -> float:
    errors = judged(recording)
    return mean_error_bps(errors, FUSED) / mean_error_bps(errors, best_of(errors))


NETWORK: dict[str, Measure] = {
    "1": partial(_connections, "reno", Goal("ratio", ">=", 5.0)),
    "2": partial(_connections, "bbr", Goal("ratio", "<=", 1.3)),
    "3": partial(_relayed, "reno", 1, Goal("ratio", ">=", 5.0)),
    "4": partial(_relayed, "cubic", 1, Goal("ratio", ">=", 4.0)),
    "5": partial(_relayed, "bbr", 1, Goal("ratio", "1 +-", 0.1)),
    "6": partial(_relayed, "reno", 8, None),
    "7": partial(_learned, "cubic"),
    "8": partial(_learned, "reno"),
    "9": _taken_back,
    "10": _tracer,
    "12": partial(_fan_out, "group"),
    "13": partial(_fan_out, "unicast"),
    "14": _way,
}
FORECASTS: dict[str, Measure] = {"11": _forecast}
