"""The figures of a probe in tables."""

from statistics import fmean, pstdev
from typing import Any

from downburst.foundation.rates import rate_text
from downburst_app.cli.client import HubClient, table
from downburst_app.cli.probes.words import headline


def print_probe(client: HubClient, probe: dict[str, Any]) -> None:
    """Prints a probe with its gaps and all its figures."""
    print(f"probe {probe['id']} of {probe['site']}: {headline(probe)}")
    for gap in probe["gaps"]:
        print(f"interrupted from {gap['since']} to {gap['until'] or 'now'}: {gap['reason']}")
    result = probe["result"]
    if result is None:
        return
    if probe["kind"] == "stacks":
        _print_trials(result["trials"] or [])
        return
    _steps_table(result["steps"])
    _print_bound(result)
    if probe["kind"] == "soak":
        _hours_table(client, probe)
    _excess_table(probe["id"], result["excess"] or [])
    _print_sender(probe)


def _steps_table(steps: list[dict[str, Any]]) -> None:
    """A row for each rate."""
    columns = ("asked", "sent", "received", "lost", "reordered", "delay, median", "p99", "jitter")
    rows = [
        [
            rate_text(step["rate_bps"]),
            rate_text(step["sent_bps"]),
            rate_text(step["received_bps"]),
            f"{step['loss']:.3%}",
            step["reordered"],
            _ms(step["delay_us"] and step["delay_us"]["median"]),
            _ms(step["delay_us"] and step["delay_us"]["p99"]),
            _ms(step["jitter_us"]),
        ]
        for step in steps
    ]
    table("Rates", columns, rows, empty="it measured nothing")
    for step in steps:
        if dropped := step["receiver_dropped"]:
            rate = rate_text(step["rate_bps"])
            print(f"at {rate} the receiver's host dropped {dropped} packets; they are no loss of the path")


def _print_bound(result: dict[str, Any]) -> None:
    if any(step["delay_us"] for step in result["steps"]):
        print(f"delays are differences of two clocks; their bound: {_ms(result['delay_bound_us'])}")


def _hours_table(client: HubClient, probe: dict[str, Any]) -> None:
    """A row for each hour of a soak."""
    rows: list[list[object]] = []
    first = 0
    while page := client.ask("GET", "v1", "probes", str(probe["id"]), "seconds", params={"first": first}):
        hour = [one for one in page if one["second"] // 3_600 == page[0]["second"] // 3_600]
        first = hour[-1]["second"] + 1
        rows.append(_hour(hour))
    table("Hours", ("hour", "seconds", "mean rate", "variation", "lost"), rows, empty="no second is stored yet")


def _hour(seconds: list[dict[str, Any]]) -> list[object]:
    rates = [one["bytes"] * 8 for one in seconds]
    mean, sent = fmean(rates), sum(one["sent"] for one in seconds)
    return [
        seconds[0]["second"] // 3_600,
        len(seconds),
        rate_text(mean),
        f"{pstdev(rates) / mean:.2%}" if mean else "not known",
        f"{sum(one['lost'] for one in seconds) / sent:.4%}" if sent else "not known",
    ]


def _excess_table(number: int, found: list[dict[str, Any]]) -> None:
    """A row for each of the first runs of late packets: how late they became, and when they were in time again."""
    if not found:
        return
    columns = ("at", "lost", "excess", "recovered after", "predicted")
    rows = [
        [
            f"{one['at_us'] / 1e6:.3f} s",
            one["lost"],
            _ms(one["excess_us"]),
            "never" if one["recovery_us"] is None else _ms(one["recovery_us"]),
            _predicted(one),
        ]
        for one in found[:MOST_EXCESS]
    ]
    table("Excess delay", columns, rows, empty="")
    if len(found) > MOST_EXCESS:
        print(f"{len(found) - MOST_EXCESS} more are in downburst probe show {number} --json")


def _predicted(excess: dict[str, Any]) -> str:
    if excess["predicted_us"] is not None:
        return _ms(excess["predicted_us"])
    return "" if excess["peak_bps"] is None else "never"


def _print_trials(trials: list[dict[str, Any]]) -> None:
    """A row for each flow of each trial, and the trials that did not run or say less about the path."""
    rows = [row for number, trial in enumerate(trials, 1) for row in _trial_rows(number, trial)]
    columns = ("trial", "flow", "goodput", "share", "resent", "round trip", "fairness")
    table("Trials", columns, rows, empty="it measured nothing")
    for number, trial in enumerate(trials, 1):
        if trial["reason"] is not None:
            print(f"trial {number} did not run: {trial['reason']}")
    limited = [str(number) for number, trial in enumerate(trials, 1) if trial["limited"]]
    if limited:
        print(f"held back by the probe's own limit, and not by the path: trials {', '.join(limited)}")


def _trial_rows(number: int, trial: dict[str, Any]) -> list[list[object]]:
    fairness = "" if trial["fairness"] is None else f"{trial['fairness']:.2f}"
    pairs = zip(trial["flows"], trial["shares"], strict=True)
    # The figures of the whole trial stand beside its first flow.
    return [
        ["" if at else number, *_flow_cells(flow, share), "" if at else fairness]
        for at, (flow, share) in enumerate(pairs)
    ]


def _flow_cells(flow: dict[str, Any], share: float | None) -> list[object]:
    return [
        flow["congestion"] + (" (reverse)" if flow["reverse"] else ""),
        rate_text(flow["goodput_bps"]),
        "" if share is None else f"{share:.0%}",
        flow["retransmits"],
        _ms(flow["round_trip_us"]["mean"]),
    ]


def _print_sender(probe: dict[str, Any]) -> None:
    result = probe["result"]
    highest = rate_text(max(step["rate_bps"] for step in probe["steps"]))
    print(f"the sender was up to {result['sender_lag_us'] / 1e3:.2f} ms behind its schedule; highest rate {highest}")
    if result["congestion"] is not None:
        print(f"TCP with {result['congestion']} sent {result['retransmits']} segments again")


def _ms(microseconds: float | None) -> str:
    return "not known" if microseconds is None else f"{microseconds / 1e3:.3f} ms"


MOST_EXCESS = 20
