"""Settings of multicast: of the hub, and of single feeds."""

from ipaddress import IPv4Network, IPv6Network, ip_address

from pydantic import Field, field_validator

from downburst.settings.section import Section


class FeedMulticast(Section):
    """How one feed multicasts, where that differs from the hub's other feeds."""

    interface: str | None = Field(default=None, description="As `multicast.interface`, for this feed.")
    network: IPv4Network | IPv6Network | None = Field(
        default=None, description="As `multicast.network`, for this feed."
    )
    rate_bps: int | None = Field(default=None, gt=0, description="As `multicast.rate_bps`, for this feed.")
    hops: int | None = Field(default=None, ge=1, le=255, description="As `multicast.hops`, for this feed.")
    burst_bytes: int | None = Field(default=None, ge=2_000, description="As `multicast.burst_bytes`, for this feed.")
    parity_percent: float | None = Field(
        default=None, ge=0, le=30, description="As `multicast.parity_percent`, for this feed."
    )
    loss_quantile: float | None = Field(
        default=None, ge=0, le=1, description="As `multicast.loss_quantile`, for this feed."
    )
    repair_s: int | None = Field(default=None, ge=1, le=3_600, description="As `multicast.repair_s`, for this feed.")

    @field_validator("network")
    @classmethod
    def _is_multicast(cls, network: IPv4Network | IPv6Network | None) -> IPv4Network | IPv6Network | None:
        return network if network is None else _multicast_network(network)


class CatchUpSettings(Section):
    """How sites that return from the same outage get what they all lack."""

    streams: int = Field(
        default=0,
        ge=0,
        le=100,
        description="Maximum of streams at a time by which sites that return together catch up. 0: each alone.",
    )
    least_bytes: int = Field(
        default=16_000_000,
        ge=1,
        description="Bytes of a feed that two sites both lack before a stream begins. Below, copies are faster.",
    )
    wait_s: float = Field(
        default=2.0,
        ge=0,
        le=60,
        description="Longest wait of a returning site for members of its group that are still away, in seconds.",
    )


class MulticastSettings(Section):
    """Multicast of this hub."""

    enabled: bool = Field(
        default=True, description="Whether any feed may go by multicast; off: the scheduler gives this as its reason."
    )
    interface: str = Field(
        default="127.0.0.1",
        description="Interface for multicast: name, number or address. Loopback: a trial disturbs no network.",
    )
    network: IPv4Network | IPv6Network = Field(
        default=IPv4Network("239.77.0.0/16"),
        description="Network of the groups, one per leg. Organisation-local scope (RFC 2365): stays inside. "
        "Inside 232.0.0.0/8 or ff3e::8000:0/97 sites join with the hub as the only source.",
    )
    hops: int = Field(
        default=32,
        ge=1,
        le=255,
        description="Range of multicast (TTL, hop limit). The default is wider than any national network.",
    )
    burst_bytes: int | None = Field(
        default=None,
        ge=2_000,
        description="Frame bytes that a leg may send beyond its rate: a policer's buffer. None: 10 ms of the rate.",
    )
    parity_percent: float = Field(
        default=0,
        ge=0,
        le=30,
        description="Maximum share of repair symbols sent ahead of requests, in percent, where loss is steady. "
        "0: none.",
    )
    loss_quantile: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="A leg adapts its rate to the site that this share of the others outperform. 0.9: all but 10 %.",
    )
    repair_s: int = Field(
        default=60,
        ge=1,
        le=3_600,
        description="Maximum age of repairs by the group; older ones go by each site's session.",
    )
    offload: bool = Field(
        default=True,
        description="Whether trains of datagrams leave in one call (UDP GSO). Off where a card breaks it.",
    )
    feeds: dict[str, FeedMulticast] = Field(
        default={}, description="For feeds by name: the settings above and rate_bps where they differ."
    )
    port_base: int = Field(
        default=17_000, ge=1024, le=64_000, description="UDP port of a leg: this plus the leg's id modulo 1,000."
    )
    rate_bps: int = Field(
        default=400_000_000,
        gt=0,
        description="Pace of a multicast leg in bits per second. The default is near the one-second peak of NGRID, "
        "411 Mb/s.",
    )
    catch_up: CatchUpSettings = CatchUpSettings()
    retry_minutes: float = Field(
        default=30.0,
        gt=0,
        description="Minutes after which a site that received no multicast is tested again. By then the network may "
        "be repaired.",
    )

    amt_relays: list[str] = Field(
        default=[],
        max_length=8,
        description="AMT relays (RFC 7450), ADDRESS or ADDRESS:PORT, best first, for sites whose multicast interface "
        "is `amt`. None: the anycast addresses 192.52.193.1 and 2001:3::1.",
    )

    @field_validator("network")
    @classmethod
    def _is_multicast(cls, network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
        return _multicast_network(network)

    @field_validator("amt_relays")
    @classmethod
    def _are_addresses(cls, relays: list[str]) -> list[str]:
        for relay in relays:
            amt_endpoint(relay)
        return relays

    @property
    def amt_interface(self) -> str:
        """The interface of sites that have groups sent by an AMT relay of this hub's, in the words of the node."""
        return f"amt:{','.join(self.amt_relays)}" if self.amt_relays else "amt"

    def of(self, feed: str) -> "MulticastSettings":
        """The settings for one feed."""
        own = self.feeds.get(feed)
        return self if own is None else self.model_copy(update=own.model_dump(exclude_none=True))


def _multicast_network(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    if not network.is_multicast:
        raise ValueError(f"{network} is not a multicast network; take one inside 239.0.0.0/8 or ff15::/16")
    return network


def amt_endpoint(text: str) -> tuple[str, int]:
    """Address and port of an AMT relay: `ADDRESS`, `ADDRESS:PORT` or `[IPV6]:PORT`; others raise ValueError."""
    address, port = text, str(AMT_PORT)
    if text.startswith("["):
        address, _, rest = text.removeprefix("[").partition("]")
        port = rest.removeprefix(":") if rest.startswith(":") else port if not rest else ""
    elif text.count(":") == 1:
        address, _, port = text.partition(":")
    found = ip_address(address)
    if found.is_multicast or found.is_unspecified or not (port.isdecimal() and 0 < int(port) < PORTS):
        raise ValueError(f"{text!r} is no address of an AMT relay; write 192.0.2.1:2268 or [2001:db8::1]:2268")
    return address, int(port)


AMT_PORT = 2_268
"""RFC 7450, section 7.2."""
PORTS = 65_536
