"""Probes in words and tables."""

from statistics import fmean, pstdev
from typing import Any

from downburst.foundation.rates import rate_text
from downburst_app.cli.client import HubClient, table


def headline(probe: dict[str, Any]) -> str:
    """The outcome in one line."""
    way = "to the site" if probe["direction"] == "out" else "from the site"
    if probe["relay"] is not None:
        way = f"{way}, {'from' if probe['direction'] == 'out' else 'to'} relay {probe['relay']}"
    words = f"{probe['kind']} {way}, {probe['state']}"
    figures = _figures(probe)
    words += f": {figures}" if figures else ""
    return f"{words} ({probe['reason']})" if probe["reason"] else words


def steps_table(probe: dict[str, Any]) -> None:
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
        for step in probe["result"]["steps"]
    ]
    table("Rates", columns, rows, empty="it measured nothing")
    for step in probe["result"]["steps"]:
        if dropped := step["receiver_dropped"]:
            rate = rate_text(step["rate_bps"])
            print(f"at {rate} the receiver's host dropped {dropped} packets; they are no loss of the path")


def hours_table(client: HubClient, probe: dict[str, Any]) -> None:
    """A row for each hour of a soak."""
    rows: list[list[object]] = []
    first = 0
    while page := client.ask("GET", "v1", "probes", str(probe["id"]), "seconds", params={"first": first}):
        first = page[-1]["second"] + 1
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


def _figures(probe: dict[str, Any]) -> str:
    result = probe["result"]
    if result is None or not result["steps"]:
        return ""
    if probe["kind"] == "knee":
        return _knee(result["knee_bps"], result["knee_reason"])
    step = result["steps"][0]
    words = f"{rate_text(step['received_bps'])} of {rate_text(step['rate_bps'])} arrived, {step['loss']:.3%} lost"
    dropped = sum(one["receiver_dropped"] for one in result["steps"])
    words += f", {dropped} packets dropped by the receiver's host" if dropped else ""
    return words if result["variation"] is None else f"{words}, variation {result['variation']:.2%}"


def _knee(knee_bps: float | None, reason: str | None) -> str:
    if knee_bps is None:
        return f"no knee: {reason or 'not known'}"
    return f"the knee is at {rate_text(knee_bps)}" if reason is None else f"at least {rate_text(knee_bps)}: {reason}"


def _ms(microseconds: float | None) -> str:
    return "not known" if microseconds is None else f"{microseconds / 1e3:.3f} ms"
