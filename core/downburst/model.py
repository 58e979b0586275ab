"""The home of Downburst's words: feeds, sites, subscriptions, legs, plans, and what the node answers.

Values are frozen; whoever changes one makes another with `dataclasses.replace`. Instants are aware and in UTC.
Rates are Ethernet-frame bits per second where a leg or an interface is meant, product bits where a feed is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from downburst.names import check_feed_name, check_product_id, check_site_name
from downburst.rights import Limit


class FeedClass(StrEnum):
    """Priority of a feed, highest first."""

    WARNING = "warning"
    OBSERVATION = "observation"
    GRID = "grid"
    BULK = "bulk"


class DuplicateRule(StrEnum):
    """What makes two products of a feed the same one."""

    ID_AND_CONTENT = "id-and-content"
    CONTENT_WITHOUT_WMO_START = "content-without-wmo-start"
    ID = "id"
    SIGNATURE = "signature"
    """LDM's own rule: its signature, normally the MD5 of the bytes, whatever the ids."""
    NONE = "none"


class Durability(StrEnum):
    """What an acknowledged product survives: the end of the process, or a power cut (fsync per product)."""

    PROCESS = "process"
    POWER = "power"


class Transport(StrEnum):
    """How the bytes of a leg travel."""

    UNICAST = "unicast"
    STATIC_CIRCUIT = "static-circuit"
    DYNAMIC_CIRCUIT = "dynamic-circuit"
    MULTICAST = "multicast"


class ResendKind(StrEnum):
    """Why stored products travel again."""

    RESEND = "resend"
    """Somebody asked: every product is delivered once more, whether the site has it or not."""
    BACKFILL = "backfill"
    """A subscription begins in the past: what the site holds already is dropped there."""


class ResendState(StrEnum):
    """Where a resend stands."""

    WAITING = "waiting"
    """Not finished; goes on whenever the site is connected."""
    DONE = "done"
    CANCELLED = "cancelled"


class LatencyKind(StrEnum):
    """Between which stamps a latency lies."""

    DISTRIBUTION = "distribution"
    """From storage at the hub to storage at the site."""
    END_TO_END = "end-to-end"
    """From creation at the origin to storage at the site."""
    QUEUEING = "queueing"
    """From storage at the hub to the first byte sent; the part of distribution that the hub itself makes."""
    ACTION = "action"
    """From storage at the site to the file that local software sees."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A named stream of products."""

    name: str
    feed_class: FeedClass = FeedClass.GRID
    retention_hours: float = 2.0
    retention_bytes: int = 10_000_000_000
    objective_ms: float = 0.0
    duplicate_rule: DuplicateRule = DuplicateRule.ID_AND_CONTENT
    durability: Durability = Durability.PROCESS
    max_product_bytes: int = 4_294_967_296
    unicast_leg: int | None = None
    """The leg that serves sites by unicast; given by the ledger when the feed is created, kept for its life."""
    created_at: datetime | None = None
    ldm_feed_type: str | None = None
    """LDM's feed types of its products, as an expression; None: LDMs neither bring nor get them."""
    ldm_pattern: str | None = None
    """Of these types, the products whose identifier matches; None: all."""

    def __post_init__(self) -> None:
        check_feed_name(self.name)
        if self.objective_ms <= 0:
            object.__setattr__(self, "objective_ms", DEFAULT_OBJECTIVE_MS[self.feed_class])


@dataclass(frozen=True, slots=True)
class Place:
    """Where a site is."""

    text: str = ""
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True)
class CircuitAttachment:
    """Where circuits end at a site: a port or an STP, and the VLANs usable there (first, last)."""

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
    """Interface or address at the site that joins groups; empty: the site's own choice."""
    circuit_attachment: CircuitAttachment | None = None
    access_rate_bps: float | None = None
    ceiling_mbps_by_hour: tuple[float, ...] = ()
    """What the site allows us, for each hour of the day in UTC; empty: no ceiling."""
    allow: tuple[str, ...] = ("*",)
    """Feeds the site may take; `*` stands for all."""
    limits: tuple[Limit, ...] = ()
    """What of them it may take; of the others everything."""
    multicast: bool = True
    """Whether the site may be served by multicast."""
    active: bool = True
    data_connections: int | None = None
    """How many connections for products it gets beside its first, 0 to 16; `None`: as many as help."""
    created_at: datetime | None = None
    ldm_host: str | None = None
    """It keeps its LDM: matches the host's name or address. Its subscriptions are what it may ask for."""

    def __post_init__(self) -> None:
        check_site_name(self.name)

    def may_take(self, feed: str) -> bool:
        """Whether the allow list covers the feed."""
        return "*" in self.allow or feed in self.allow

    def limits_of(self, feed: str) -> tuple[Limit, ...]:
        """What of the feed it may take; none: all of it."""
        return tuple(limit for limit in self.limits if limit.feed == feed)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A site's wish for the products of a feed whose id matches `pattern` and not `not_pattern`."""

    id: int
    site: str
    feed: str
    pattern: str = ".*"
    not_pattern: str | None = None
    in_order: bool = False
    """Local software at the site sees live products in the order of their sequences; see `hold_s`."""
    hold_s: float = 2.0
    """How long a missing product holds back the later ones, if `in_order`; then they go and it follows as late."""
    max_age_s: float | None = None
    """Products stored at the hub longer ago than this are not sent any more; they expire for the site."""
    start_at: datetime | None = None
    """The site gets what was stored from here on; None: from the moment of the subscription."""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IdFilter:
    """Product ids that match `pattern` and not `not_pattern`."""

    pattern: str = ".*"
    not_pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Resend:
    """Products of a feed that were stored at the hub in a time range and go to one site again."""

    id: int
    site: str
    feed: str
    from_at: datetime
    to_at: datetime
    kind: ResendKind = ResendKind.RESEND
    wanted: IdFilter = IdFilter()
    had: tuple[IdFilter, ...] = ()
    """What the site subscribed before a backfill; products that match one of these are left out."""
    state: ResendState = ResendState.WAITING
    requested_at: datetime | None = None
    requested_by: str = ""
    ended_at: datetime | None = None
    products: int = 0
    """Delivered under this resend so far."""
    bytes: int = 0
    expired: int = 0
    """Matched, but the hub has only the memory of them."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A hub that this hub is a site of: what it sends goes into this hub's own feeds."""

    name: str
    address: str
    """Host and port for its sites."""
    token: str = field(repr=False)
    """Its operator's enrolment token for this hub."""
    feeds: tuple[str, ...] = ()
    """The feeds to take; none: all that exist here and that it sends."""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LdmSource:
    """LDMs that are asked for the same products; these go into the feeds that have their feed types."""

    name: str
    feeds: str
    """Feed types, as an expression."""
    upstreams: tuple[str, ...]
    """`HOST[:PORT]`: the first one sends at once, the others after a question each; that turns by who is faster."""
    pattern: str = ".*"
    max_age_s: int = 3600
    """Older products are not taken, and no older ones asked for."""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LdmAccept:
    """Hosts that may push products of these feed types whose identifiers match."""

    id: int
    feeds: str
    pattern: str
    host: str
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Leg:
    """One delivery over one path to a set of sites."""

    leg: int
    transport: Transport
    sites: tuple[str, ...]
    group: str | None = None
    port: int | None = None
    rate_bps: int | None = None
    circuits: tuple[tuple[str, int], ...] = ()
    """For a static-circuit leg the number of the circuit to each site; for a group on a circuit the same for all."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One transport as the scheduler judged it."""

    transport: Transport
    feasible: bool
    reason: str
    egress_bps: float | None = None
    """Mean egress of the hub for this feed."""
    peak_egress_bps: float | None = None
    predicted_p50_ms: float | None = None
    predicted_p95_ms: float | None = None
    predicted_p99_ms: float | None = None
    predicted_max_ms: float | None = None
    reserved_bps: float | None = None
    """Rates of circuits over the time that they would be up."""
    price_bps: float | None = None
    """What egress, circuits and unwanted bytes cost, as bits per second of egress."""
    score_bps: float | None = None
    """The price, and what it costs that the objective is missed; the lowest is best."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The scheduler's versioned decision for a feed, with the figures and the sentence that explain it."""

    feed: str
    version: int
    legs: tuple[Leg, ...]
    reason: str
    made_at: datetime
    candidates: tuple[Candidate, ...] = ()
    figures: Mapping[str, float | str | bool | None] = field(default_factory=dict)
    pinned: bool = False

    @property
    def transport(self) -> Transport:
        """That of the leg with most sites; unicast while there is no site."""
        widest = max(self.legs, key=lambda leg: len(leg.sites), default=None)
        return Transport.UNICAST if widest is None else widest.transport


@dataclass(frozen=True, slots=True)
class Pin:
    """An operator's order to use one transport for a feed."""

    feed: str
    transport: Transport
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LegCounters:
    """What a leg sent under one version of a feed's plan."""

    feed: str
    version: int
    leg: int
    transport: Transport
    sites: int = 0
    products: int = 0
    product_bytes: int = 0
    egress_bytes: int = 0
    """UDP and TCP payload with TLS, repair and the leg's share of control bytes."""
    repair_bytes: int = 0
    control_bytes: int = 0
    unicast_equivalent_bytes: int = 0
    """What the same products would have cost at least if each site had got its own copy."""


@dataclass(frozen=True, slots=True)
class SketchRow:
    """Latencies of one feed, site, transport, kind and minute, as a mergeable sketch."""

    feed: str
    site: str
    transport: Transport
    kind: LatencyKind
    minute: int
    """Minutes since 1970."""
    count: int
    sum_ms: float
    min_ms: float
    max_ms: float
    negative: int
    bound_ms: float | None
    buckets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FeedLog:
    """What the log of a feed holds."""

    feed: str
    products: int
    bytes: int
    """Disk in use, indexes included."""
    limit_bytes: int
    oldest_us: int | None
    """When its oldest product was stored; None: it holds none."""


@dataclass(frozen=True, slots=True)
class ProductException:
    """A product that was not stored at a site."""

    feed: str
    epoch: str
    sequence: int
    site: str
    outcome: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Head:
    """The highest number that a feed's log is known to have given in one of its lives."""

    feed: str
    epoch: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Settled:
    """How far a site is with a feed, and what it did with the products: one batch's counts, or all of them summed."""

    feed: str
    epoch: str
    site: str
    settled_to: int
    stored: int = 0
    stored_bytes: int = 0
    duplicates: int = 0
    rejected: int = 0
    expired: int = 0
    last_receipt_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What the node hands over once: sketches, exceptions and frontiers since the last batch."""

    id: str
    sketches: tuple[SketchRow, ...] = ()
    exceptions: tuple[ProductException, ...] = ()
    settled: tuple[Settled, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """Something an operator should see, and what to do about it."""

    at: datetime
    sentence: str
    feed: str | None = None
    site: str | None = None
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class TrafficMinute:
    """What came into a feed in one minute."""

    feed: str
    minute: int
    products: int
    bytes: int
    peak_1s_bytes: int


@dataclass(frozen=True, slots=True)
class Product:
    """What is known of a product before its bytes are stored."""

    feed: str
    product_id: str
    created_at: datetime | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        check_feed_name(self.feed)
        check_product_id(self.product_id)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The node's answer to an ingested product: stored at `sequence`, or a duplicate of `duplicate_of`."""

    size_bytes: int
    digest: str
    sequence: int | None = None
    epoch: str | None = None
    stored_at: datetime | None = None
    created_at: datetime | None = None
    duplicate_of: int | None = None


DEFAULT_OBJECTIVE_MS: Mapping[FeedClass, float] = {
    FeedClass.WARNING: 1_000.0,
    FeedClass.OBSERVATION: 2_000.0,
    FeedClass.GRID: 5_000.0,
    FeedClass.BULK: 60_000.0,
}
