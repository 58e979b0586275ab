"""Probes in a line."""

from typing import Any

from downburst.foundation.rates import rate_text


def headline(probe: dict[str, Any]) -> str:
    """The outcome in one line."""
    way = "to the site" if probe["direction"] == "out" else "from the site"
    if probe["relay"] is not None:
        way = f"{way}, {'from' if probe['direction'] == 'out' else 'to'} relay {probe['relay']}"
    over = " over TCP" if probe["transport"] == "tcp" and probe["kind"] != "stacks" else ""
    words = f"{probe['kind']}{over} {way}, {probe['state']}"
    figures = _figures(probe)
    words += f": {figures}" if figures else ""
    return f"{words} ({probe['reason']})" if probe["reason"] else words


def _figures(probe: dict[str, Any]) -> str:
    result = probe["result"]
    if result is None:
        return ""
    if probe["kind"] == "stacks":
        return _compared(result["trials"] or [])
    if not result["steps"]:
        return ""
    if probe["kind"] == "knee":
        return _knee(result["knee_bps"], result["knee_reason"])
    step = result["steps"][0]
    words = f"{rate_text(step['received_bps'])} of {rate_text(step['rate_bps'])} arrived, {step['loss']:.3%} lost"
    dropped = sum(one["receiver_dropped"] for one in result["steps"])
    words += f", {dropped} packets dropped by the receiver's host" if dropped else ""
    return words if result["variation"] is None else f"{words}, variation {result['variation']:.2%}"


def _compared(trials: list[dict[str, Any]]) -> str:
    """The least fair trial, which is the news of a comparison."""
    ran = [one for one in trials if one["reason"] is None]
    words = f"{len(ran)} of {len(trials)} trials ran"
    fair = [one for one in ran if one["fairness"] is not None]
    if not fair:
        return words
    least = min(fair, key=lambda one: float(one["fairness"]))
    names = " beside ".join(flow["congestion"] for flow in least["flows"] if not flow["reverse"])
    return f"{words}, the least fair {least['fairness']:.2f} with {names}"


def _knee(knee_bps: float | None, reason: str | None) -> str:
    if knee_bps is None:
        return f"no knee: {reason or 'not known'}"
    return f"the knee is at {rate_text(knee_bps)}" if reason is None else f"at least {rate_text(knee_bps)}: {reason}"
