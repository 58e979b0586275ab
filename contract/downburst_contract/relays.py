"""Relays: machines of the hub on the way to sites, with their tunnels, legs and log."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from downburst.domain import relays
from downburst.domain.relays import FanOut, LoggedTunnel
from downburst.domain.relays.relay import MOST_SITES
from downburst.live.site_states import SiteState
from downburst_contract.base import Answer, OffsetTime, Shape, members

_Name = Annotated[str, Field(min_length=1, max_length=64)]


class RelayWanted(Shape):
    """A relay, without its name."""

    address: Annotated[str, Field(max_length=300)] | None = None
    """HOST:PORT at which its sites reach it; null, or left out: it splices no connections."""
    fan_out: FanOut | None = None
    """It takes one copy of a leg, and sends it to a multicast group of its network (`group`) or to each site by UDP
    (`unicast`); null, or left out: it takes none."""
    sites: list[_Name] = Field(default_factory=list, max_length=MOST_SITES)
    """The sites behind it; another relay among them reaches the hub through this one."""
    feeds: list[_Name] = Field(default_factory=lambda: ["*"], max_length=1000)
    """The feeds granted to it; `*` stands for all."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"address", "fan_out"}

    def to_model(self, name: str) -> relays.Relay:
        """The relay; refuses impossible values."""
        return relays.Relay(name, self.address, self.fan_out, tuple(self.sites), tuple(self.feeds))


class RelaySegment(Answer):
    """One TCP connection of a tunnel, by the relay's kernel; null: not measured yet."""

    round_trip_us: int | None
    loss_ppm: int | None
    """Segments sent again, per million."""
    congestion: str
    rate_bps: int


class RelayTunnel(Answer):
    """A connection of a site that the relay carries in two segments."""

    site: str | None
    """Null: the hub knows no session with this address."""
    site_side: str
    """IP:PORT of the peer, as the relay sees it."""
    hub_side: str
    """IP:PORT of the relay, as the hub sees it."""
    target: str
    seconds: float
    bytes_from_hub: int
    bytes_from_site: int
    rate_from_hub_bps: int
    near: RelaySegment
    """Between relay and site."""
    onward: RelaySegment
    """Between relay and hub, or the next relay."""
    ended: bool


class RelayLeg(Answer):
    """A leg that the relay fans out, counted since it opened."""

    leg: int
    datagrams: int
    bytes: int
    dropped: int
    """Datagrams that the relay could not send in time; sites request them."""


class Relay(Answer):
    """A relay with its state and its newest report."""

    relay: str
    address: str | None
    fan_out: FanOut | None
    sites: list[str]
    feeds: list[str]
    created_at: datetime | None
    state: SiteState
    state_words: str
    """The state for people, with its time and reason."""
    connected: bool
    reported_at: OffsetTime | None
    """The time of the newest report; null: none since the hub started."""
    refused: int | None
    """Tunnels refused since the relay started."""
    tunnels: list[RelayTunnel]
    """None while the relay is away."""
    legs: list[RelayLeg]

    @classmethod
    def of(cls, relay: relays.Relay, **more: Any) -> Self:
        """A relay for clients, with its state and report."""
        return cls(**members(relay, relay="name"), **more)


class RelayRecord(Answer):
    """A tunnel in the log of its relay: at its end, or at an hour of its life."""

    number: int
    at: OffsetTime
    tunnel: RelayTunnel

    @classmethod
    def of(cls, logged: LoggedTunnel) -> Self:
        """A record for clients."""
        return cls(**members(logged, without=("relay",)))


class SiteWay(Answer):
    """The way of a site, as the scheduler chose it."""

    chain: list[str]
    """Relays, the nearest to the site first; none: the direct way."""
    reason: str
    predicted_bps: int | None
    direct_bps: int | None
    """The prediction for the direct way."""
    measured_bps: int | None
    """By the chosen way, as achieved since."""
    decided_at: OffsetTime | None
    circuit: int | None
    """The ordered circuit that carries the segment between two of the relays now; null: all of the way is routed."""

    @classmethod
    def of(cls, way: relays.SiteWay) -> Self:
        """A way for clients."""
        return cls(**members(way, without=("site", "over")), circuit=way.over.circuit if way.over else None)
