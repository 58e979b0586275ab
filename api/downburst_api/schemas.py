"""Shapes of requests and answers, apart from the model: names and defaults here are promises to clients."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from downburst.credentials import Credential, EnrolmentToken
from downburst.ldm.feed_types import parse_feed_type
from downburst.model import (
    CircuitAttachment,
    DuplicateRule,
    Durability,
    Feed,
    FeedClass,
    LdmAccept,
    LdmSource,
    LegCounters,
    Pin,
    Place,
    Plan,
    Resend,
    Site,
    Subscription,
    Transport,
    Upstream,
)
from downburst.rights import Limit

_Bytes = Annotated[int, Field(gt=0, le=2**62)]
_Text = Annotated[str, Field(max_length=500)]
_Pattern = Annotated[str, Field(max_length=4096)]


def _is_feed_type(text: str) -> str:
    parse_feed_type(text)
    return text


_FeedType = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_is_feed_type)]
"""LDM's feed types, as an expression."""

_LdmPattern = Annotated[str, Field(min_length=1, max_length=255)]
_LdmHost = Annotated[str, Field(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\s:]+)(:[0-9]{1,5})?$", max_length=260)]


class Shape(BaseModel):
    """What all requests share: no member that is not known, no null where none belongs."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    @model_validator(mode="after")
    def _no_null_where_none_belongs(self) -> Self:
        """A member that is given must have a value, unless null means something for it."""
        for name in self.model_fields_set - self._nullable():
            if getattr(self, name) is None:
                raise ValueError(f"{name} can't be null; leave it out to keep or default it")
        return self

    @classmethod
    def _nullable(cls) -> set[str]:
        return set()


class FeedChange(Shape):
    """Properties of a feed; those left out keep their value (PATCH) or take the default (POST, PUT)."""

    feed_class: FeedClass | None = Field(None, alias="class")
    retention_hours: Annotated[float, Field(gt=0, le=24 * 366)] | None = None
    retention_bytes: _Bytes | None = None
    objective_ms: Annotated[float, Field(gt=0, le=86_400_000)] | None = None
    duplicate_rule: DuplicateRule | None = None
    durability: Durability | None = None
    max_product_bytes: _Bytes | None = None
    ldm_feed_type: _FeedType | None = None
    """LDM's feed types of its products; null: LDMs neither bring nor get them."""
    ldm_pattern: _LdmPattern | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"ldm_feed_type", "ldm_pattern"}

    def given(self) -> dict[str, Any]:
        """What the client said, by the model's names."""
        return self.model_dump(exclude_unset=True)


class FeedNew(FeedChange):
    """A feed to make."""

    feed: str

    def to_model(self) -> Feed:
        """The feed with defaults for what was left out."""
        given = self.given()
        if given.get("ldm_feed_type") is not None:
            # What several LDMs bring is the same if they say so, and requests are resumed by that.
            given.setdefault("duplicate_rule", DuplicateRule.SIGNATURE)
        return Feed(given.pop("feed"), **given)


class PlaceShape(Shape):
    """Where a site is."""

    text: _Text = ""
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

    organisation: _Text | None = None
    contact: _Text | None = None
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
            values["place"] = Place(**self.place.model_dump() if self.place else {})
        if self.circuit_attachment is not None:
            values["circuit_attachment"] = CircuitAttachment(**self.circuit_attachment.model_dump())
        for name in {"allow", "ceiling_mbps_by_hour"} & values.keys():
            values[name] = tuple(values[name])
        return values


class LimitShape(Shape):
    """Of a feed the site may take what matches `pattern` (OK) and not `not_pattern` (NOT)."""

    feed: Annotated[str, Field(min_length=1, max_length=64)]
    pattern: _Pattern = ".*"
    not_pattern: _Pattern | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"not_pattern"}


class SiteChange(EndpointChange):
    """Properties of a site; those left out keep their value (PATCH) or take the default (POST)."""

    allow: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=1000)] | None = None
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

    def to_model(self) -> Site:
        """The site with defaults for what was left out."""
        given = self.given()
        return Site(given.pop("site"), **given)


class TokenNew(Shape):
    """How long an enrolment token lasts; the hub's setting `token_hours` if left out."""

    hours: Annotated[float, Field(gt=0, le=24 * 366)] | None = None
    credential_days: Annotated[float, Field(gt=0, le=366 * 20)] | None = None
    """How long the receiver's credential lasts, and each that takes its place; the hub's setting
    `access.credential_days` if left out."""


class SubscriptionNew(Shape):
    """Products of a feed whose id matches `pattern` (extended regex, searched) and not `not_pattern`."""

    feed: str
    pattern: _Pattern = ".*"
    not_pattern: _Pattern | None = None
    in_order: bool = False
    hold_s: Annotated[float, Field(ge=0, le=3600)] = 2.0
    max_age_s: Annotated[float, Field(gt=0, le=366 * 86_400)] | None = None
    start: Annotated[str, Field(max_length=64)] = "now"
    """`now`, RFC 3339 with an offset, or how long ago: `2h`."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"not_pattern", "max_age_s"}


class ResendNew(Shape):
    """Products stored at the hub from `from` to `to` whose id matches, to one site again."""

    site: str
    feed: str
    from_at: Annotated[str, Field(alias="from", max_length=64)]
    """RFC 3339 with an offset, or how long ago: `2h`."""
    to_at: Annotated[str, Field(alias="to", max_length=64)] = "now"
    pattern: _Pattern = ".*"
    not_pattern: _Pattern | None = None
    by: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Who is named as the one who asked; whoever asks, if left out."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"not_pattern"}


class UpstreamNew(Shape):
    """A hub that this hub becomes a site of."""

    upstream: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]
    address: Annotated[str, Field(pattern=r"^\S+:[0-9]{1,5}$", max_length=260)]
    token: Annotated[str, Field(pattern=r"^dbt1\.[0-9a-fA-F]{64}\.[A-Za-z0-9_-]+$", max_length=512)]
    feeds: Annotated[list[str], Field(max_length=1000)] = []


class LdmSourceNew(Shape):
    """LDMs that are asked for the same products."""

    source: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]
    feeds: _FeedType
    pattern: _LdmPattern = ".*"
    upstreams: Annotated[list[_LdmHost], Field(min_length=1, max_length=8)]
    max_age_s: Annotated[int, Field(ge=1, le=366 * 86_400)] = 3600

    def to_model(self) -> LdmSource:
        """The source."""
        return LdmSource(self.source, self.feeds, tuple(self.upstreams), self.pattern, self.max_age_s)


class LdmAcceptNew(Shape):
    """Hosts that may push products."""

    feeds: _FeedType
    pattern: _LdmPattern = ".*"
    host: Annotated[str, Field(min_length=1, max_length=500)]

    def to_model(self) -> LdmAccept:
        """The line."""
        return LdmAccept(0, self.feeds, self.pattern, self.host)


class PinNew(Shape):
    """A transport to use whatever the scheduler thinks."""

    transport: Transport
    by: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Who is named as the one who asked; whoever asks, if left out."""


class Stored(BaseModel):
    """A product that is in the log; `duplicate_of` instead of a sequence if it was there before."""

    feed: str
    product_id: str
    stored: bool
    sequence: int | None = None
    epoch: str | None = None
    size: int
    digest: str
    stored_at: datetime | None = None
    created_at: datetime | None = None
    duplicate_of: int | None = None


def feed_out(feed: Feed) -> dict[str, Any]:
    """A feed for clients."""
    values = asdict(feed)
    return {"feed": values.pop("name"), "class": values.pop("feed_class"), **values}


def site_out(site: Site) -> dict[str, Any]:
    """A site for clients."""
    values = asdict(site)
    return {"site": values.pop("name"), **values}


def subscription_out(subscription: Subscription) -> dict[str, Any]:
    """A subscription for clients."""
    return asdict(subscription)


def resend_out(resend: Resend) -> dict[str, Any]:
    """A resend for clients."""
    values = asdict(resend)
    renamed = {"from": values.pop("from_at"), "to": values.pop("to_at")}
    return {**values.pop("wanted"), **renamed, **values}


def upstream_out(upstream: Upstream) -> dict[str, Any]:
    """An upstream for clients, without its token."""
    values = asdict(upstream)
    del values["token"]
    return {"upstream": values.pop("name"), **values}


def credential_out(credential: Credential) -> dict[str, Any]:
    """A credential for clients: its hash, never anything to log in with."""
    return asdict(credential) | {"renews_at": credential.renews_at if credential.is_kept else None}


def token_out(token: EnrolmentToken) -> dict[str, Any]:
    """A token for clients: when and by whom it was used, never its secret."""
    return {
        "site": token.site,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "used_at": token.used_at,
        "used_peer": token.used_peer,
    }


def pin_out(pin: Pin) -> dict[str, Any]:
    """A pin for clients."""
    return asdict(pin)


def plan_out(plan: Plan, counters: list[LegCounters]) -> dict[str, Any]:
    """A plan for clients, with what each of its legs sent under it."""
    sent = {row.leg: row for row in counters if row.feed == plan.feed and row.version == plan.version}
    listed = [_leg_out(asdict(leg), sent.pop(leg.leg, None)) for leg in plan.legs]
    # Legs of an earlier plan can send a last product after the change; it is booked here and must not be hidden.
    rest = [_leg_out({"leg": row.leg, "transport": row.transport, "sites": ()}, row) for row in sent.values()]
    return {
        "feed": plan.feed,
        "version": plan.version,
        "transport": plan.transport,
        "reason": plan.reason,
        "made_at": plan.made_at,
        "pinned": plan.pinned,
        "legs": listed + rest,
        "candidates": [asdict(candidate) for candidate in plan.candidates],
        "figures": dict(plan.figures),
        "floor": _floor_out(plan),
        "flip": plan.figures.get("flip") or None,
        "would_be": plan.figures.get("would_be"),
        "products": max((row["products"] for row in listed + rest), default=0),
    }


def _floor_out(plan: Plan) -> dict[str, Any] | None:
    """The machines' own time inside the plan's predictions, in milliseconds; None: not measured yet."""
    shown = {name: plan.figures.get(f"floor_{name}") for name in FLOOR}
    return shown if shown["deliveries"] else None


def _leg_out(leg: dict[str, Any], sent: LegCounters | None) -> dict[str, Any]:
    names = leg.pop("sites")
    circuits = [{"site": site, "circuit": number} for site, number in leg.pop("circuits", ())]
    kept = sent or LegCounters("", 0, 0, Transport.UNICAST)
    return leg | {
        "sites": max(len(names), kept.sites),
        "site_names": list(names),
        "circuits": circuits,
        "products": kept.products,
        "bytes": kept.product_bytes,
        "egress_bytes": kept.egress_bytes,
        "repair_bytes": kept.repair_bytes,
        "control_bytes": kept.control_bytes,
        "unicast_equivalent_bytes": kept.unicast_equivalent_bytes,
    }


def ldm_source_out(source: LdmSource) -> dict[str, Any]:
    """A source for clients."""
    values = asdict(source)
    return {"source": values.pop("name"), **values}


FLOOR = ("p50_ms", "p95_ms", "p99_ms", "hub_p50_ms", "slowest_site", "slowest_site_p50_ms", "deliveries")
"""Of the figures of a plan, where their names begin with `floor_`."""
