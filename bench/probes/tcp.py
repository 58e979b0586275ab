"""Probes over TCP: the delay after one lost packet, and congestion controls beside each other."""

from pathlib import Path
from typing import Any

from bench.harness.report import Goal, Row, median
from bench.probes.path import M, MissingError, probed_path
from kit.wire import Lane

CIRCUIT_BPS, ROUND_TRIP_MS = 40 * M, 40.0
LOSSY = Lane(rate_bps=CIRCUIT_BPS, delay_ms=ROUND_TRIP_MS / 2, buffer_bytes=400_000, every=4_000)
"""One frame of four thousand is lost: once in some seconds."""
CLEAN = Lane(rate_bps=CIRCUIT_BPS, delay_ms=ROUND_TRIP_MS / 2, buffer_bytes=400_000)
STACKS = ("cubic", "bbr", "reno")


def recovery_rows(directory: Path, runs: int) -> list[Row]:
    """At 0.8 of the rate the delay returns in the time of the formula; at 0.98 it does not."""
    excess_ms, shares = [], []
    for run in range(runs):
        after = _after_loss(directory / f"slow-{run}", 0.8)
        if after["recovery_us"] is None or not after["predicted_us"]:
            raise RuntimeError(f"at 0.8 of the rate the delay did not return, or nothing was predicted: {after}")
        excess_ms.append(after["excess_us"] / 1e3)
        shares.append((after["recovery_us"] / 1e3, after["predicted_us"] / 1e3))
    stays = [_after_loss(directory / f"fast-{run}", 0.98)["recovery_us"] is None for run in range(runs)]
    case = f"one lost packet, round trip {ROUND_TRIP_MS:.0f} ms, TCP at 0.8 c"
    took = median(one for one, _ in shares), median(other for _, other in shares)
    return [
        Row(
            "6",
            f"{case}: excess of delay",
            "ms",
            median(excess_ms),
            "",
            None,
            runs,
            Goal("ours", ">=", ROUND_TRIP_MS),
        ),
        Row("7", f"{case}: recovery below 1 ms", "ms", took[0], "formula", took[1], runs, Goal("ratio", "1 +-", 0.3)),
        Row("8", "at 0.98 c: runs in which it stays", "runs", sum(stays), "", None, runs, Goal("ours", ">=", runs)),
    ]


def stacks_rows(directory: Path, *, seconds: float) -> list[Row]:
    """Each control alone, each pair, and with reverse traffic: shares, fairness and retransmissions."""
    pairs = [[one] for one in STACKS] + [[a, b] for at, a in enumerate(STACKS) for b in STACKS[at:]]
    trials = [
        {"flows": flows, "reverse": reverse, "duration_ms": round(seconds * 1e3)}
        for flows in pairs
        for reverse in ([], [STACKS[0]])
    ]
    with probed_path(directory, CLEAN, CLEAN) as path:
        ended = path.probed("stacks", kind="stacks", direction="out", rate_bps=10 * CIRCUIT_BPS, trials=trials)
    found = ended.get("trials")
    if not found:
        raise MissingError("the node gave no trials; it knows no probes over TCP")
    rows = [
        _trial_row(f"S{number}", wanted, one)
        for number, (wanted, one) in enumerate(zip(trials, found, strict=True), 1)
    ]
    return [row for row in rows if row is not None]


def _trial_row(name: str, wanted: dict[str, Any], trial: dict[str, Any]) -> Row | None:
    ahead = [flow for flow in trial["flows"] if not flow["reverse"]]
    if trial["reason"] or not ahead:
        return None
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


def _after_loss(directory: Path, share: float) -> dict[str, Any]:
    """The first excess of the delay after a loss, of a constant rate over TCP."""
    steps = [{"rate_bps": round(share * CIRCUIT_BPS), "duration_ms": 6_000}]
    with probed_path(directory, LOSSY, CLEAN) as path:
        ended = path.probed("tcp", kind="cbr", direction="out", steps=steps, transport="tcp", congestion="cubic")
    if "congestion" not in ended:
        raise MissingError("the node knows no probes over TCP")
    # The smaller ones are those of a late sender or receiver.
    lost = [one for one in ended["excess"] or () if one["excess_us"] >= 500 * ROUND_TRIP_MS]
    if not lost:
        raise RuntimeError(f"no packet was lost: {ended['excess']}")
    return dict(lost[0])
