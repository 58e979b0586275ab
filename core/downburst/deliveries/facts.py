"""Facts about a product and its way to a site, before any judgement."""

from dataclasses import dataclass
from datetime import datetime

from downburst.domain.events import ActionFailed
from downburst.domain.plans import Transport
from downburst.domain.receipts import ProductException
from downburst.domain.subscriptions import IdFilter, Limit, Subscription


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
    """True if the log still has the bytes; the description outlives them."""
    properties: str | None = None
    """The statements of its source, where they were asked for."""


@dataclass(frozen=True, slots=True)
class ReceiptFacts:
    """A site's report on a product. Stamps of the site are on the site's clock."""

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
    """The site's clock minus the hub's; None until they are compared."""
    clock_bound_us: int | None = None


@dataclass(frozen=True, slots=True)
class WaitingBytes:
    """The backlog of one feed in a session's outbox."""

    feed: str
    live: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class SentBytes:
    """The bytes of one feed that the hub sent to a site while a product waited."""

    feed: str
    products: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The state of a product in the session of a connected site."""

    standing: str
    """settled, queued, owed, left-to-leg, said, not-served, or no-answer."""
    transport: Transport
    leg: int
    lane: str | None = None
    asked: bool = False
    """The site requested it, because its regular transport did not deliver it."""
    numbers_before: int | None = None
    joining: bool = False
    """A multicast leg was offered, and the site does not receive it yet."""
    leg_backlog_bytes: int | None = None
    first_byte_at: datetime | None = None
    settled_to: int | None = None
    pending: int | None = None
    clock_offset_us: int | None = None
    clock_bound_us: int | None = None
    waiting: tuple[WaitingBytes, ...] = ()


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """The node's knowledge of a product's way to one site."""

    site: str
    active: bool = True
    subscriptions: int = 0
    """The number of the site's subscriptions to the feed."""
    matching: tuple[IdFilter, ...] = ()
    """The subscriptions that match the product."""
    session: SessionFacts | None = None
    receipts: tuple[ReceiptFacts, ...] = ()
    sent_before: tuple[SentBytes, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundDeliveries:
    """The node's answer: products, newest first, with the facts about their ways."""

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
    """Facts of the ledger and of the present about one site and one product."""

    allowed: bool = True
    allow: tuple[str, ...] = ("*",)
    limits: tuple[Limit, ...] = ()
    """Restrictions on the product's feed for the site; empty: no restrictions."""
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
    """The reason why the site stores nothing of the feed at the moment, in its words."""
    action_failed: ActionFailed | None = None
    """The newest failure of the site's own rules for a product of the feed."""
    retention_hours: float | None = None
    objective_ms: float | None = None
    deadline_ms: int | None = None
