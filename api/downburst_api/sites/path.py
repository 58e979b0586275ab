"""The path to a site in answers; units are in the names, null is not measured yet."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from downburst.domain.circuits import Circuit, Direction, Measured
from downburst.domain.path_facts import KnownPath
from downburst.domain.sites import Site
from downburst.domain.tcp.profiles import AppliedProfile
from downburst.domain.tcp.rates import ParallelConnections, parallel_connections
from downburst.forecasts.fused import Forecast
from downburst.forecasts.path_rates import PathForecast


def path_out(
    site: Site,
    known: KnownPath,
    forecast: PathForecast | None,
    circuits: Sequence[Circuit],
    measured: Sequence[Measured],
    *,
    retry: timedelta,
) -> dict[str, Any]:
    """All inputs of a choice of transport."""
    return {
        "site": site.name,
        "seen_at": known.at.isoformat() if known.at else None,
        "round_trip_ms": _ms(known.least_round_trip_us),
        "clock_bound_ms": _ms(known.clock_bound_us),
        "access_rate_bps": site.access_rate_bps,
        "forecast": _forecast(forecast.rate) if forecast else None,
        **seen_of(site, known, circuits, measured, retry=retry),
    }


def seen_of(
    site: Site, known: KnownPath, circuits: Sequence[Circuit], measured: Sequence[Measured], *, retry: timedelta
) -> dict[str, Any]:
    """The overview's figures of the path besides round trip and clock."""
    tcp = known.tcp
    return {
        "loss": known.loss,
        "rate_bps": tcp.rate_bps if tcp else None,
        "rate_is_lower_bound": tcp.is_lower_bound if tcp else None,
        "congestion_control": tcp.congestion if tcp else None,
        "path_mtu_bytes": tcp.path_mtu_bytes if tcp else None,
        "multicast": _multicast(site, known, retry),
        "circuits": [_circuit(circuit, measured) for circuit in circuits],
        "tcp_profile": _profile(known.profile) if known.profile else None,
    }


def parallel_of(site: Site, known: KnownPath, feeds_bps: float) -> ParallelConnections | None:
    """The number of connections that equal the site's access rate, or without one the rate of its feeds."""
    tcp, least_us = known.tcp, known.least_round_trip_us
    mtu_bytes = tcp.path_mtu_bytes if tcp else None
    return parallel_connections(
        tcp.congestion if tcp else None,
        round_trip_s=None if least_us is None else least_us / 1e6,
        loss=known.loss,
        target_bps=site.access_rate_bps or feeds_bps or None,
        segment_bytes=float(max((mtu_bytes or ETHERNET_BYTES) - HEADER_BYTES, LEAST_SEGMENT_BYTES)),
    )


def _forecast(rate: Forecast) -> dict[str, Any]:
    return {
        "rate_bps": rate.rate_bps,
        "error_share": rate.error_share,
        "samples": rate.samples,
        "best": rate.best,
    }


def _profile(applied: AppliedProfile) -> dict[str, Any]:
    return {"profile": applied.name, "state": applied.state, "knobs": asdict(applied.knobs)}


def _multicast(site: Site, known: KnownPath, retry: timedelta) -> dict[str, Any]:
    """Results of joining a feed's group: `heard`, `not-heard` or `too-slow`; the last two are tried again."""
    tried, untried = known.group, {"feed": None, "at": None, "again_at": None}
    if not site.multicast:
        return untried | {"state": "not-allowed", "reason": "the operator serves it by unicast"}
    if tried is None:
        return untried | {"state": "not-tried", "reason": "no feed of this site has used multicast yet"}
    again_at = None if tried.heard else (tried.at + retry).isoformat()
    at, reason = tried.at.isoformat(), tried.reason
    return {"state": tried.result, "feed": tried.feed, "at": at, "again_at": again_at, "reason": reason}


def _circuit(circuit: Circuit, measured: Sequence[Measured]) -> dict[str, Any]:
    of_it = (row for row in measured if row.circuit == circuit.number and row.direction is Direction.OUT)
    found = next(of_it, None)
    return {
        "circuit": circuit.number,
        "state": circuit.shown_state,
        "rate_bps": circuit.rate_out_bps,
        "measured_bps": found.rate_bps if found else None,
        "enough": found.enough if found else None,
    }


def _ms(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e3


ETHERNET_BYTES = 1_500
HEADER_BYTES = 52
"""IPv4 and TCP with time stamps."""
LEAST_SEGMENT_BYTES = 48
