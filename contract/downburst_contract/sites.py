"""Sites and what belongs to them: endpoints, rights, credentials, tokens, backlogs, the way to them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from downburst.domain import credentials
from downburst.domain import sites as sites_domain
from downburst.domain.circuits import CircuitState
from downburst.domain.readings import PriorityStanding
from downburst.domain.sites import CircuitAttachment
from downburst.domain.subscriptions import Limit
from downburst.live.site_states import SiteState
from downburst_contract.base import Answer, OffsetTime, Pattern, Shape, Text, members
from downburst_contract.relays import SiteWay
from downburst_contract.subscriptions import Subscription
from downburst_contract.tcp_profiles import AppliedProfile

FeedName = Annotated[str, Field(min_length=1, max_length=64)]


class PlaceShape(Shape):
    """Where a site is."""

    text: Text = ""
    latitude: Annotated[float, Field(ge=-90, le=90)] | None = None
    longitude: Annotated[float, Field(ge=-180, le=180)] | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"latitude", "longitude"}


class AttachmentShape(Shape):
    """Port or STP where circuits end, and the usable VLANs."""

    port: Annotated[str, Field(min_length=1, max_length=500)]
    first_vlan: Annotated[int, Field(ge=1, le=4094)]
    last_vlan: Annotated[int, Field(ge=1, le=4094)]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last_vlan < self.first_vlan:
            raise ValueError("last_vlan lies before first_vlan; swap them")
        return self


class EndpointChange(Shape):
    """What a site says of itself; what is left out keeps its value."""

    organisation: Text | None = None
    contact: Text | None = None
    place: PlaceShape | None = None
    multicast_interface: Annotated[str, Field(max_length=64)] | None = None
    circuit_attachment: AttachmentShape | None = None
    access_rate_bps: Annotated[float, Field(gt=0, le=1e15)] | None = None
    ceiling_mbps_by_hour: list[Annotated[float, Field(ge=0, le=1e9)]] | None = None

    @model_validator(mode="after")
    def _whole_day(self) -> Self:
        if self.ceiling_mbps_by_hour and len(self.ceiling_mbps_by_hour) != 24:
            raise ValueError("ceiling_mbps_by_hour has 24 values, one for each hour in UTC, or none")
        return self

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"circuit_attachment", "access_rate_bps"}

    def given(self) -> dict[str, Any]:
        """What the client said, in the model's types."""
        values = {name: getattr(self, name) for name in self.model_fields_set}
        if "place" in values:
            values["place"] = sites_domain.Place(**self.place.model_dump() if self.place else {})
        if self.circuit_attachment is not None:
            values["circuit_attachment"] = CircuitAttachment(**self.circuit_attachment.model_dump())
        for name in {"allow", "ceiling_mbps_by_hour"} & values.keys():
            values[name] = tuple(values[name])
        return values


class LimitShape(Shape):
    """Of a feed the site may take what matches `pattern` (OK) and not `not_pattern` (NOT)."""

    feed: FeedName
    pattern: Pattern = ".*"
    not_pattern: Pattern | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"not_pattern"}


class SiteChange(EndpointChange):
    """Properties of a site; those left out keep their value (PATCH) or take the default (POST)."""

    allow: Annotated[list[FeedName], Field(max_length=1000)] | None = None
    limits: Annotated[list[LimitShape], Field(max_length=1000)] | None = None
    """Of these feeds it may take this alone; several to one feed add up, feeds without one may be taken whole."""
    multicast: bool | None = None
    active: bool | None = None
    data_connections: Annotated[int, Field(ge=0, le=16)] | None = None
    ldm_host: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    """For a site that keeps its LDM: a pattern of its host's name or address; null: it runs a receiver."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return super()._nullable() | {"data_connections", "ldm_host"}

    def given(self) -> dict[str, Any]:
        """What the client said, in the model's types."""
        values = super().given()
        if self.limits is not None:
            values["limits"] = tuple(Limit(**limit.model_dump()) for limit in self.limits)
        return values


class SiteNew(SiteChange):
    """A site to make."""

    site: str

    def to_model(self) -> sites_domain.Site:
        """The site with defaults for what was left out."""
        given = self.given()
        return sites_domain.Site(given.pop("site"), **given)


class TokenNew(Shape):
    """How long an enrolment token lasts; the hub's setting `token_hours` if left out."""

    hours: Annotated[float, Field(gt=0, le=24 * 366)] | None = None
    credential_days: Annotated[float, Field(gt=0, le=366 * 20)] | None = None
    """How long the receiver's credential lasts, and each that takes its place; the hub's setting
    `access.credential_days` if left out."""


class Place(Answer):
    """Where a site is."""

    text: str
    latitude: float | None
    longitude: float | None


class Attachment(Answer):
    """Where circuits end at a site: a port or an STP, and the VLANs usable there (first, last)."""

    port: str
    first_vlan: int
    last_vlan: int


class SiteLimit(Answer):
    """Of a feed the site may take what matches `pattern` (OK) and not `not_pattern` (NOT)."""

    feed: str
    pattern: str
    not_pattern: str | None


class Site(Answer):
    """An organisation's receiving host."""

    site: str
    organisation: str
    contact: str
    place: Place
    multicast_interface: str
    """Interface or address at the site that joins groups; empty: the site's own choice."""
    circuit_attachment: Attachment | None
    access_rate_bps: float | None
    ceiling_mbps_by_hour: list[float]
    """What the site allows the hub, for each hour of the day in UTC; empty: no ceiling."""
    allow: list[str]
    """Feeds the site may take; `*` stands for all."""
    limits: list[SiteLimit]
    multicast: bool
    """Whether the site may be served by multicast."""
    active: bool
    data_connections: int | None
    """How many connections for products it gets beside its first, 0 to 16; null: as many as help."""
    created_at: datetime | None
    ldm_host: str | None
    """It keeps its LDM: matches the host's name or address."""

    @classmethod
    def of(cls, site: sites_domain.Site, /, **more: Any) -> Self:
        """A site for clients, with the other members of its shape."""
        return cls(**members(site, site="name"), **more)


class SiteCondition(Answer):
    """The state of a site and its backlog."""

    relay: bool
    """The record of a relay, which takes no products."""
    state: SiteState
    state_words: str
    """The state for people, with its time and reason."""
    since: datetime | None
    reason: str | None
    """The cause of its absence, if known."""
    connected: bool
    behind_products: int | None
    """The number of its next products that are due, by the hub's log; null while it is unknown."""
    behind_bytes: int | None
    behind_s: float | None
    """The age of the oldest of them."""
    lost_products: int | None
    """Products that left the hub's log before the site stored them."""
    lost_bytes: int | None
    behind_counting: bool | None
    """The count is not finished: it is a lower bound."""


class SiteListed(SiteCondition, Site):
    """A site with its state, its backlog, and the reason of each feed that it can't store."""

    troubles: dict[str, str]
    """By feed, why the site can't store it."""


class Credential(Answer):
    """The credential of a receiver: its hash, never anything to log in with."""

    sha256: str
    site: str
    created_at: datetime
    peer: str
    expires_at: datetime | None
    revoked_at: datetime | None
    replaces: str | None
    """SHA-256 of the one that it takes the place of."""
    replaced_at: datetime | None
    asked_at: datetime | None
    """Since when somebody wants it replaced before its time."""
    renews_at: datetime | None
    """From when on its receiver is asked for another one."""

    @classmethod
    def of(cls, credential: credentials.Credential) -> Self:
        """A credential for clients."""
        return cls(**members(credential), renews_at=credential.renews_at if credential.is_kept else None)


class Token(Answer):
    """An enrolment token: when and by whom it was used, never its secret."""

    site: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None
    used_peer: str | None

    @classmethod
    def of(cls, token: credentials.EnrolmentToken) -> Self:
        """A token for clients."""
        return cls(**_token_members(token))


class TokenMade(Answer):
    """An enrolment token with its text, which is shown only here."""

    token: str
    site: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None
    used_peer: str | None

    @classmethod
    def of_text(cls, text: str, token: credentials.EnrolmentToken) -> Self:
        """A token for whoever made it."""
        return cls(token=text, **_token_members(token))


class Heartbeat(Answer):
    """Of the heartbeats in a feed: when the newest that came out was made, and the oldest that did not."""

    came_out: datetime | None
    waits_since: datetime | None


class FeedBacklog(Answer):
    """What a site lacks of one feed."""

    feed: str
    known: bool
    """False: the site stands in another log than the hub's, so that it can't be counted."""
    products: int
    bytes: int
    oldest_us: int | None
    lost_products: int
    lost_bytes: int
    counting: bool


class DataConnections(Answer):
    """A session's connections for products."""

    open: int
    planned: int
    reason: str


class OwnClock(Answer):
    """A site's clock by the site's kernel, against true time and not against the hub's clock."""

    synchronised: bool
    """A daemon keeps it in step."""
    daemon: str | None
    """The program that disciplines it; null: the site sees none."""
    error_ms: float
    """The largest error; it grows without a daemon."""
    estimated_error_ms: float
    """The error that the daemon expects."""


class LineReading(Answer):
    """What the line of a site's host carried while a group lost packets, over about a second: its capacity."""

    arrived_bps: int
    """Everything that arrived from the hubs, in Ethernet-frame bits per second."""
    offered_bps: int
    """The rate at which the group was sent in that time."""
    packets: int
    """Packets of the group that were sent in that time."""
    lost: int
    """Of these, the packets that did not arrive."""
    windows: int
    """Measured stretches since the site's receiver started."""


class HostReading(Answer):
    """How a site's host reads the multicast group of a feed, since its receiver started."""

    leg: int
    dropped: int
    """Datagrams that the kernel dropped, as the receive buffer had no room for them."""
    asked_bytes: int
    """The receive buffer that the receiver requests; the kernel grants and accounts the double."""
    granted_bytes: int
    needed_bytes: int
    """What the leg's rate needs on a busy host, as the kernel accounts it."""
    limit_bytes: int | None
    """`net.core.rmem_max` at the site; null: not known."""
    priority: int | None
    """The requested real-time priority; null: none."""
    standing: PriorityStanding
    demotions: int
    """How often a reading thread lost its priority, as it ran for too long without a pause."""
    line: LineReading | None
    """Null: the feed's groups never lost packets in a steady stream, or the receiver does not report it."""
    advice: str | None
    """The setting to change at the site; null: nothing is to be done."""


class SessionShown(Answer):
    """The session of a connected site."""

    data_connections: DataConnections | None
    clock: OwnClock | None
    """Null: not connected, or a receiver that does not report it."""
    readings: dict[str, HostReading]
    """By feed, how the site's host reads its group: of feeds that came by multicast in this session."""


class SiteWhole(SiteCondition, Site):
    """One site with its subscriptions, credentials and tokens, and the state of its session."""

    subscriptions: list[Subscription]
    credentials: list[Credential]
    tokens: list[Token]
    troubles: dict[str, str]
    heartbeats: dict[str, Heartbeat]
    backlog: list[FeedBacklog]
    sites_address: list[str]
    """Where receivers connect."""
    session: SessionShown


class Hearing(Answer):
    """Whether a site hears groups, as it was when it last joined one."""

    state: Literal["heard", "not-heard", "too-slow", "not-tried", "not-allowed"]
    feed: str | None
    at: OffsetTime | None
    again_at: OffsetTime | None
    reason: str


class Offer(Answer):
    """A circuit to the site; `enough` is null until it was measured."""

    circuit: int
    state: CircuitState
    rate_bps: int
    measured_bps: int | None
    enough: bool | None


class PathFacts(Answer):
    """What was measured of the way to a site beside round trip and clock; null is what nobody has measured yet."""

    loss: float | None
    """The share of segments that were sent again of late."""
    rate_bps: int | None
    rate_is_lower_bound: bool | None
    """There was nothing more to send."""
    congestion_control: str | None
    path_mtu_bytes: int | None
    multicast: Hearing
    circuits: list[Offer]
    tcp_profile: AppliedProfile | None
    """Null: no profile has the site's address, or it was never connected."""


class RateForecast(Answer):
    """The rate to expect of the connections to a site, from measured rates."""

    rate_bps: float
    error_share: float
    """The mean error of the last forecasts, as a share of the rate."""
    samples: int
    best: Literal["mean", "median", "ewma", "autoregression", "nearest"]
    """The predictor with the least error of late."""


class ParallelConnections(Answer):
    """The number of connections that equal a rate, by round trip, segment size and loss of the path."""

    sentence: str
    connections: int | None
    """Null: loss does not limit a connection, or no rate is wanted."""
    one_bps: float | None
    """The rate of one connection, by Mathis; for cubic the larger one of Mathis and RFC 9438."""
    target_bps: float | None
    """The access rate of the site; without one, the present rate of its feeds."""


class Path(PathFacts):
    """The way to a site: measured, tested and reserved."""

    site: str
    seen_at: OffsetTime | None
    round_trip_ms: float | None
    clock_bound_ms: float | None
    access_rate_bps: float | None
    forecast: RateForecast | None
    """Null without enough recent measurements of the path, or while the hub's own pace may have limited them."""
    parallel: ParallelConnections | None
    """Null while round trip, loss or congestion control are not known."""
    way: SiteWay | None
    """Null: the scheduler never chose one, so the site connects as its administrator wants."""


class TokensEnded(Answer):
    """How many unused enrolment tokens of a site ended."""

    site: str
    ended: int


class CredentialsRevoked(Answer):
    """How many credentials of a site were revoked."""

    site: str
    revoked: int


class ReplacementAsked(Answer):
    """How many credentials of a site will be replaced, and whether its receiver can do so by itself."""

    site: str
    asked: int
    connected: bool
    renews: bool | None
    """Null while the site is not connected."""


def _token_members(token: credentials.EnrolmentToken) -> Mapping[str, Any]:
    return {name: getattr(token, name) for name in Token.model_fields}
