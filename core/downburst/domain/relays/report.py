"""The report of a relay, as its hub passes it on: tunnels with both segments, and copies of legs."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP connection of a tunnel, by the relay's kernel."""

    round_trip_us: int | None
    loss_ppm: int | None
    """Segments sent again, per million."""
    congestion: str
    """The name of the congestion control."""
    rate_bps: int


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A connection of a site that the relay carries in two segments."""

    site: str | None
    """None: the hub knows no session with this address."""
    site_side: str
    """IP:PORT of the peer, as the relay sees it."""
    hub_side: str
    """IP:PORT of the relay, as the hub sees it."""
    target: str
    seconds: float
    """The tunnel's age."""
    bytes_from_hub: int
    bytes_from_site: int
    rate_from_hub_bps: int
    near: Segment
    """Between relay and site."""
    onward: Segment
    """Between relay and hub, or the next relay."""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class LoggedTunnel:
    """A tunnel at the time of its record."""

    number: int
    relay: str
    at: datetime
    tunnel: Tunnel


@dataclass(frozen=True, slots=True)
class RelayedLeg:
    """A leg that the relay fans out, counted since it opened."""

    leg: int
    datagrams: int
    bytes: int
    dropped: int
    """Datagrams that the relay could not send in time; sites request them."""


@dataclass(frozen=True, slots=True)
class RelayReport:
    """The newest facts about a relay."""

    relay: str
    tunnels: tuple[Tunnel, ...] = ()
    legs: tuple[RelayedLeg, ...] = ()
    refused: int = 0
    """Tunnels refused since the relay started."""
