"""Products: their upload, what a feed's log holds, and where a product is."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from downburst.deliveries import Cause, DeliveryState, FactorName
from downburst.domain.latency import Certainty
from downburst.domain.plans import Transport
from downburst_contract.base import Answer, Pattern, Shape


class PatternTest(Shape):
    """A subscription that is tried on what came."""

    pattern: Pattern = ".*"
    not_pattern: Pattern | None = None
    hours: Annotated[float, Field(gt=0, le=24)] = 1

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"not_pattern"}


class Stored(Answer):
    """A product that is in the log; `duplicate_of` instead of a sequence if it was there before.

    Members without a value are left out.
    """

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


class ProductListed(Answer):
    """A product as a feed's log describes it."""

    feed: str
    sequence: int
    product_id: str
    origin: str
    created_at: datetime
    stored_at: datetime
    digest: str
    kept: bool
    """Whether the log still has the bytes; the description outlives them."""
    size: int


class ProductPage(Answer):
    """A page of products, newest first."""

    items: list[ProductListed]
    next: str | None
    """The cursor of the next page; null: there is none."""


class PatternTested(Answer):
    """Effect of a pattern on the last hours: counts, and the newest ids that match and do not."""

    feed: str
    since: datetime
    products: int
    matched: int
    matched_bytes: int
    matched_ids: list[str]
    other_ids: list[str]
    complete: bool


class SizeBin(Answer):
    """How many products have at most so many bytes, and more than half of it."""

    up_to_bytes: int
    products: int


class SilenceBin(Answer):
    """How many gaps between products last at most so long, and longer than half of it."""

    up_to_ms: int
    times: int


class Distribution(Answer):
    """Product sizes of a feed and gaps between its products, from its log."""

    feed: str
    since: datetime
    products: int
    bytes: int
    sizes: list[SizeBin]
    silences: list[SilenceBin]
    complete: bool


class Receipt(Answer):
    """What a site said about a product. Stamps of the site are on the site's clock."""

    outcome: str
    lane: str
    transport: Transport
    leg: int
    repaired: bool
    first_byte_sent_at: datetime | None
    """On the hub's clock."""
    last_byte_at: datetime | None
    site_stored_at: datetime | None
    action_done_at: datetime | None
    clock_offset_us: int | None
    """Site's clock minus the hub's; null while they were not compared."""
    clock_bound_us: int | None


class Stage(Answer):
    """The time between two stamps that follow each other."""

    stage: str
    ms: float | None
    """Null where a clock or a missing stamp leaves it unknown. May be negative."""
    across_clocks: bool
    """Both ends are on different clocks: the value is known to within the bound."""
    bound_ms: float | None
    """The largest error of the clocks' comparison; null on one clock, and where a source's clock is not compared."""
    certainty: Certainty | None
    """Null without a value, and for a source's clock unless it is wrong."""


class Timing(Answer):
    """A product's time on its way to one site."""

    distribution_ms: float | None
    """From the hub's log to the site's log."""
    end_to_end_ms: float | None
    bound_ms: float | None
    """The largest error of the clocks' comparison; the clock of the source is not compared."""
    certainty: Certainty | None
    """Of `distribution_ms`."""
    slow: str | None
    """The stage that took most, if the product was late."""
    stages: list[Stage]


class Factor(Answer):
    """One part of a product's time at a site: from its stamps, or from the state of the path."""

    factor: FactorName
    ms: float | None
    """Null where it is not known. Parts of the path count with their share of the product's time on the line."""
    share: float | None
    """Of the bytes for `repair`, of the reserved rate for `circuit`, of the time for `tcp`; null for others."""
    sentence: str


class Delivery(Answer):
    """A product's state for one site, with the reason and the next action."""

    site: str
    state: DeliveryState
    cause: Cause | None
    """Null where nothing keeps it: it is there, or on its way."""
    reason: str
    next_action: str
    receipt: Receipt | None
    objective_ms: float | None
    """Of the feed at the site, for the distribution latency."""
    timing: Timing
    factors: list[Factor]
    """Why it took so long: the largest first, those without a time last."""


class Heard(Answer):
    """The way of a notification through a source of this hub."""

    bridge: str
    heard_at: datetime
    settled_at: datetime | None
    """The time at which the log had the product."""


class Wis2Statement(Answer):
    """The statements of a notification of WIS2 about its product."""

    topic: str
    centre: str
    notification_id: str
    data_id: str
    metadata_id: str | None
    kind: str
    """The relation of its link: `canonical` or `update`."""
    published_at: datetime
    """`pubtime`, on the clock of its centre."""
    url: str
    shortened: bool
    """Members were left out, as the notification is too long for a product."""
    heard: Heard | None
    """Null on a hub that has the product from elsewhere, two days later, and after a later notification."""


class Announcement(Answer):
    """The announcement of a product by a publisher of this hub, or the refusal of it."""

    publisher: str
    notification_id: str
    data_id: str
    kind: str
    topic: str
    step: str
    announced_at: datetime | None
    reason: str


class Bridged(Answer):
    """The way of a product from another system, and to others."""

    properties: str | None
    """The statements of its source as they came, at most 8 KiB; null: it made none."""
    statement: Wis2Statement | None
    """Those of WIS2, read."""
    announced: list[Announcement]
    """By publishers, for as long as they serve it."""


class ProductTraced(Answer):
    """A product with its delivery to each site."""

    feed: str
    epoch: str
    sequence: int
    product_id: str
    origin: str
    created_at: datetime
    stored_at: datetime
    size: int
    digest: str
    feed_class: Annotated[str, Field(alias="class")]
    kept: bool
    bridged: Bridged
    states: dict[str, int]
    """How many sites are in each state."""
    deliveries: list[Delivery]


class Trace(Answer):
    """Where products are that a name may mean, newest first."""

    asked: str
    answered_at: datetime
    """On the hub's clock."""
    read_as: str
    """How the name was understood: file, sequence, id or digest."""
    products: list[ProductTraced]
    next_before: int | None
    notes: list[str]
    """What a reader must know about the limits of the answer."""


class LostDelivery(Answer):
    """A product that a site will not get: rejected there, or expired before delivery."""

    site: str
    feed: str
    epoch: str
    sequence: int
    state: str
    at: datetime
    product_id: str | None
    size: int | None
    stored_at: datetime | None
    kept: bool


class LostPage(Answer):
    """A page of lost deliveries, newest first."""

    items: list[LostDelivery]
    next: str | None
    """The cursor of the next page; null: there is none."""
