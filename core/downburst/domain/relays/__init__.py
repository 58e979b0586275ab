"""Relays of a hub: machines on the way to sites, the ways through them, and their reports."""

from downburst.domain.relays.relay import FanOut, Relay
from downburst.domain.relays.report import LoggedTunnel, RelayedLeg, RelayReport, Segment, Tunnel
from downburst.domain.relays.ways import Core, CoreCircuit, SiteWay

__all__ = [
    "Core",
    "CoreCircuit",
    "FanOut",
    "LoggedTunnel",
    "Relay",
    "RelayReport",
    "RelayedLeg",
    "Segment",
    "SiteWay",
    "Tunnel",
]
