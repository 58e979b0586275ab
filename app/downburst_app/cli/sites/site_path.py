"""`downburst sites path`: the measurements of the path to a site, and the rates that connections can reach on it."""

from typing import Annotated, Any

import typer

from downburst.domain.tcp.rates import CongestionControl, cubic_bps, reno_bps
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, show, table
from downburst_app.cli.sites.tcp_profiles import values_text


def path(
    site: Annotated[
        str, typer.Argument(help="Name of the site, for example unl.edu.", autocompletion=completion.sites)
    ],
    *,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show what was measured of the way to a site: round trip, loss, rate, clock, whether it hears groups, circuits.

    Example: downburst sites path unl.edu
    """
    found = HubClient(hub).ask("GET", "v1", "sites", site, "path")
    if as_json:
        show(found)
        return
    table(f"Path to {site}", ("", ""), rows(found), empty="")


def rows(found: dict[str, Any]) -> list[list[str]]:
    """The facts in words; unmeasured ones are marked so."""
    return [
        ["last seen", found["seen_at"] or "never since the hub started"],
        ["way", _way(found["way"])],
        ["round trip, the least", _measured(found["round_trip_ms"], "ms")],
        ["clock known to", _measured(found["clock_bound_ms"], "ms")],
        ["sent again", "not yet known" if found["loss"] is None else f"{found['loss']:.2%} of the segments"],
        ["recent rate", _rate(found)],
        ["forecast rate", _forecast(found["forecast"])],
        ["by its congestion control", _modelled(found)],
        ["connections for a rate", found["parallel"]["sentence"] if found["parallel"] else "not yet known"],
        ["TCP profile", _profile(found["tcp_profile"])],
        ["longest packet", _measured(found["path_mtu_bytes"], "bytes")],
        [
            "access, as configured",
            _megabits(found["access_rate_bps"]) if found["access_rate_bps"] else "not configured",
        ],
        ["multicast", _multicast(found["multicast"])],
        *([f"circuit {one['circuit']}", _circuit(one)] for one in found["circuits"]),
    ]


def _way(way: dict[str, Any] | None) -> str:
    """The way that the scheduler chose, with its reason and the rates."""
    if way is None:
        return "direct, or as the site's administrator chose"
    chosen = f"through {' and '.join(way['chain'])}" if way["chain"] else "direct"
    chosen += f", over circuit {way['circuit']}" if way["circuit"] is not None else ""
    rates = [
        f"{words} {_megabits(way[name])}"
        for name, words in (("predicted_bps", "predicted"), ("direct_bps", "direct"), ("measured_bps", "measured"))
        if way[name] is not None
    ]
    figures = f" ({', '.join(rates)})" if rates else ""
    return f"{chosen}: {way['reason']}{figures}"


def _rate(found: dict[str, Any]) -> str:
    if found["rate_bps"] is None:
        return "not yet measured"
    bound = " or more: no more data to send" if found["rate_is_lower_bound"] else ""
    return f"{_megabits(found['rate_bps'])}{bound}"


def _forecast(rate: dict[str, Any] | None) -> str:
    if rate is None:
        return "none: too few measurements, or they are near the hub's own pace"
    basis = f"{rate['samples']} measurements, {rate['best']} predicts best"
    return f"{_megabits(rate['rate_bps'])}, off by {rate['error_share']:.0%} of late ({basis})"


def _modelled(found: dict[str, Any]) -> str:
    """The rate that a formula gives for round trip and loss; a measured rate is always better."""
    control, loss = found["congestion_control"], found["loss"]
    if control is None:
        return "not yet known"
    formula = {CongestionControl.RENO: reno_bps, CongestionControl.CUBIC: cubic_bps}.get(control)
    if formula is None or not loss or not found["round_trip_ms"]:
        return f"{control}: the path limits it, not loss"
    return f"{control}: {_megabits(formula(found['round_trip_ms'] / 1e3, loss))} for each connection at this loss"


def _profile(applied: dict[str, Any] | None) -> str:
    if applied is None:
        return "none applies: the kernel's values"
    return f"{applied['profile']} ({applied['state']}): {values_text(applied['knobs'])}"


def _multicast(told: dict[str, Any]) -> str:
    why = f" ({told['reason']})" if told["reason"] else ""
    tried = f", tested with {told['feed']} {told['at'][:19]}" if told["at"] else ""
    again = f", again at {told['again_at'][:19]}" if told["again_at"] else ""
    return f"{told['state']}{why}{tried}{again}"


def _circuit(one: dict[str, Any]) -> str:
    measured = "not measured" if one["measured_bps"] is None else f"measured {_megabits(one['measured_bps'])}"
    short = ", too little" if one["enough"] is False else ""
    return f"{one['state']}, {_megabits(one['rate_bps'])}, {measured}{short}"


def _measured(value: float | None, unit: str) -> str:
    return "not yet measured" if value is None else f"{value:.3g} {unit}"


def _megabits(rate_bps: float) -> str:
    return f"{rate_bps / 1e6:.3g} Mb/s"
