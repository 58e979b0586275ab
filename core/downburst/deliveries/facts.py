"""What is known of a product and of its way to a site, before anybody judges it."""

from dataclasses import dataclass
from datetime import datetime

from downburst.domain.events import ActionFailed
from downburst.domain.plans import Transport
from downburst.domain.receipts import ProductException
from downburst.domain.rights import Limit
from downburst.domain.subscriptions import IdFilter, Subscription


@dataclass(frozen=True, slots=True)
class ProductFacts:
    """A product as the hub's log describes it."""

    feed: str
    epoch: str
    sequence: int
    product_id: str
    origin: str
    created_at: datetime
    stored_at: datetime
    size_bytes: int
    digest: str
    feed_class: str
    kept: bool
    """Whether the log still has the bytes; the description outlives them."""


@dataclass(frozen=True, slots=True)
class ReceiptFacts:
    """What a site said about a product. Stamps of the site are on the site's clock."""

    outcome: str
    lane: str
    transport: Transport
    leg: int
    repaired: bool = False
    first_byte_at: datetime | None = None
    """On the hub's clock."""
    last_byte_at: datetime | None = None
    site_stored_at: datetime | None = None
    action_done_at: datetime | None = None
    clock_offset_us: int | None = None
    """Site's clock minus the hub's; None while they were not compared."""
    clock_bound_us: int | None = None


@dataclass(frozen=True, slots=True)
class WaitingBytes:
    """What waits in a session's outbox of one feed."""

    feed: str
    live: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class SentBytes:
    """What the hub sent to a site of one feed while a product waited."""

    feed: str
    products: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """Where a product stands in the session of a connected site."""

    standing: str
    """settled, queued, owed, left-to-leg, said, not-served, or no-answer."""
    transport: Transport
    leg: int
    lane: str | None = None
    asked: bool = False
    """The site asked for it: what should have brought it did not."""
    numbers_before: int | None = None
    joining: bool = False
    """A multicast leg was offered that the site does not hear yet."""
    leg_backlog_bytes: int | None = None
    first_byte_at: datetime | None = None
    settled_to: int | None = None
    pending: int | None = None
    clock_offset_us: int | None = None
    clock_bound_us: int | None = None
    waiting: tuple[WaitingBytes, ...] = ()


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What the node knows of a product's way to one site."""

    site: str
    active: bool = True
    subscriptions: int = 0
    """How many the site has to the feed."""
    matching: tuple[IdFilter, ...] = ()
    """Those of them that want the product."""
    session: SessionFacts | None = None
    receipts: tuple[ReceiptFacts, ...] = ()
    sent_before: tuple[SentBytes, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundDeliveries:
    """The node's answer: products, newest first, and what it knows of their ways."""

    feed: str
    epoch: str
    products: tuple[tuple[ProductFacts, tuple[SiteFacts, ...]], ...]
    searched_to: int
    search_complete: bool
    receipts_complete: bool
    receipts_since: datetime | None
    """Raw receipts go back to about here; None if there are none."""
    at: datetime


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger and the present add about one site and one product."""

    allowed: bool = True
    allow: tuple[str, ...] = ("*",)
    limits: tuple[Limit, ...] = ()
    """What of the product's feed the site may take; none: all."""
    enrolled: bool = True
    subscriptions: tuple[Subscription, ...] = ()
    """To the product's feed."""
    exception: ProductException | None = None
    settled_to: int | None = None
    """The frontier in the product's epoch as last reported."""
    connected: bool = False
    last_seen_at: datetime | None = None
    away_reason: str | None = None
    trouble: str | None = None
    """Why the site stores nothing of the feed at the moment, in its words."""
    action_failed: ActionFailed | None = None
    """What the site's own rules could not do with a product of the feed, the newest."""
    retention_hours: float | None = None
    objective_ms: float | None = None
