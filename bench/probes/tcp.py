"""Probes over TCP: the delay after one lost packet, and congestion controls beside each other."""

from pathlib import Path
from typing import Any

from bench.harness.report import Goal, Row, median
from bench.probes.path import M, MissingError, probed, wired
from kit.wire import Lane

CIRCUIT_BPS, ROUND_TRIP_MS = 40 * M, 40.0
LOSSY = Lane(rate_bps=CIRCUIT_BPS, delay_ms=ROUND_TRIP_MS / 2, buffer_bytes=400_000, every=4_000)
"""One frame of four thousand is lost: once in some seconds."""
CLEAN = Lane(rate_bps=CIRCUIT_BPS, delay_ms=ROUND_TRIP_MS / 2, buffer_bytes=400_000)
STACKS = ("cubic", "bbr", "reno")


def recovery_rows(directory: Path, runs: int) -> list[Row]:
    """At 0.8 of the rate the delay returns in the time of the formula; at 0.98 it does not."""
    after = [_typical(_after_losses(directory / f"slow-{run}", 0.8)) for run in range(runs)]
    stays = [_after_losses(directory / f"fast-{run}", 0.98)[-1]["recovery_us"] is None for run in range(runs)]
    case = f"one lost packet, round trip {ROUND_TRIP_MS:.0f} ms, TCP at 0.8 c"
    excess_ms, took_ms, predicted_ms = (
        median(one[name] / 1e3 for one in after) for name in ("excess_us", "recovery_us", "predicted_us")
    )
    return [
        Row("6", f"{case}: excess of delay", "ms", excess_ms, "", None, runs, Goal("ours", ">=", ROUND_TRIP_MS)),
        Row(
            "7",
            f"{case}: recovery below 1 ms",
            "ms",
            took_ms,
            "formula",
            predicted_ms,
            runs,
            Goal("ratio", "1 +-", 0.3),
        ),
        Row("8", "at 0.98 c: runs in which it stays", "runs", sum(stays), "", None, runs, Goal("ours", ">=", runs)),
    ]


def stacks_rows(directory: Path, seconds: float, notes: list[str]) -> list[Row]:
    """Each control alone, each pair, and with reverse traffic: shares, fairness and retransmissions."""
    together = [[one] for one in STACKS] + [[a, b] for at, a in enumerate(STACKS) for b in STACKS[at:]]
    trials = [
        {"flows": flows, "reverse": reverse, "duration_ms": round(seconds * 1e3)}
        for flows in together
        for reverse in ([], [STACKS[0]])
    ]
    with wired(directory, CLEAN, CLEAN) as path:
        ended = probed(path, "stacks", kind="stacks", direction="out", rate_bps=10 * CIRCUIT_BPS, trials=trials)
    found = ended.get("trials")
    if not found:
        raise MissingError("the node gave no trials; it knows no probes over TCP")
    pairs = list(enumerate(zip(trials, found, strict=True), 1))
    notes += [f"NOT MEASURED, S{number}: {one['reason']}" for number, (_, one) in pairs if one["reason"]]
    return [_trial_row(f"S{number}", wanted, one) for number, (wanted, one) in pairs if not one["reason"]]


def _trial_row(name: str, wanted: dict[str, Any], trial: dict[str, Any]) -> Row:
    ahead = [flow for flow in trial["flows"] if not flow["reverse"]]
    shares = ", ".join(
        f"{flow['congestion']} {flow['goodput_bps'] / M:.1f} Mb/s ({flow['retransmits']} sent again)"
        for flow in ahead
    )
    beside = f" beside reverse {wanted['reverse'][0]}" if wanted["reverse"] else ""
    fairness = f", fairness {trial['fairness']:.2f}" if trial["fairness"] is not None else ""
    total_bps = sum(flow["goodput_bps"] for flow in ahead)
    limited = ", held back by the probe's limit" if trial["limited"] else ""
    case = f"stacks{beside}: {shares}{fairness}{limited}"
    return Row(name, case, "Mb/s", total_bps / M, "wire", CIRCUIT_BPS / M, 1)


def _after_losses(directory: Path, share: float) -> list[dict[str, Any]]:
    """The delays after each loss of a constant rate over TCP."""
    steps = [{"rate_bps": round(share * CIRCUIT_BPS), "duration_ms": 6_000}]
    with wired(directory, LOSSY, CLEAN) as path:
        ended = probed(path, "tcp", kind="cbr", direction="out", steps=steps, transport="tcp", congestion="cubic")
    if "congestion" not in ended:
        raise MissingError("the node knows no probes over TCP")
    # The smaller ones are those of a late sender or receiver.
    found = [dict(one) for one in ended["excess"] or () if one["excess_us"] >= 500 * ROUND_TRIP_MS]
    if not found:
        raise RuntimeError(f"no packet was lost: {ended['excess']}")
    return found


def _typical(losses: list[dict[str, Any]]) -> dict[str, Any]:
    """The one with the median excess, of those from which the delay returned."""
    returned = [one for one in losses if one["recovery_us"] is not None and one["predicted_us"]]
    if not returned:
        raise RuntimeError(f"at 0.8 of the rate the delay did not return, or nothing was predicted: {losses}")
    return sorted(returned, key=lambda one: int(one["excess_us"]))[(len(returned) - 1) // 2]
