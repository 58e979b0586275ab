"""Sites: the receiving hosts of organisations."""

from dataclasses import dataclass, field
from datetime import datetime

from downburst.domain.subscriptions import Limit
from downburst.foundation.names import check_site_name


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a site."""

    text: str = ""
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class CircuitAttachment:
    """The end of circuits at a site: a port or an STP, and the VLANs usable there (first, last)."""

    port: str
    first_vlan: int
    last_vlan: int


@dataclass(frozen=True, slots=True)
class Site:
    """An organisation's receiving host."""

    name: str
    organisation: str = ""
    contact: str = ""
    place: Place = field(default_factory=Place)
    multicast_interface: str = ""
    """Interface or address at the site that joins groups; empty: the site's own choice. `amt`: an AMT relay of the
    hub's sends them to the site (RFC 7450); `amt:ADDRESS,...`: one of these does."""
    circuit_attachment: CircuitAttachment | None = None
    access_rate_bps: float | None = None
    ceiling_mbps_by_hour: tuple[float, ...] = ()
    """The site's limit on the hub, for each hour of the day in UTC; empty: no ceiling."""
    allow: tuple[str, ...] = ("*",)
    """Feeds the site may take; `*` stands for all."""
    limits: tuple[Limit, ...] = ()
    """Limits on some of these feeds; the others may be taken whole."""
    multicast: bool = True
    """True if the site may be served by multicast."""
    active: bool = True
    data_connections: int | None = None
    """The number of its connections for products beside the first, 0 to 16; `None`: as many as help."""
    created_at: datetime | None = None
    ldm_host: str | None = None
    """It uses LDM: matches the host's name or address. It may request the products of its subscriptions."""

    def __post_init__(self) -> None:
        check_site_name(self.name)

    @property
    def has_tunnel(self) -> bool:
        """True if an AMT relay sends it groups, a copy of each."""
        return self.multicast_interface == AMT or self.multicast_interface.startswith(f"{AMT}:")

    def may_take(self, feed: str) -> bool:
        """True if the allow list covers the feed."""
        return "*" in self.allow or feed in self.allow

    def pace_bps(self, hour: int) -> float | None:
        """The rate to which the hub paces the site's connections together in this hour; None: it does not."""
        limits = [self.access_rate_bps] if self.access_rate_bps else []
        if self.ceiling_mbps_by_hour:
            limits.append(self.ceiling_mbps_by_hour[hour % len(self.ceiling_mbps_by_hour)] * 1e6)
        return min((limit for limit in limits if limit > 0), default=None)

    def limits_of(self, feed: str) -> tuple[Limit, ...]:
        """The limits on the feed; none: all of it may be taken."""
        return tuple(limit for limit in self.limits if limit.feed == feed)


AMT = "amt"
"""The interface of a site whose network carries no multicast (decision 74)."""
