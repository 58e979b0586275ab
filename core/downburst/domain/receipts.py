"""Receipts: the node's reports of sites' progress, in batches."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from downburst.domain.latency import SketchRow


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
class LogHead:
    """The highest known number of a feed's log in one of its epochs."""

    feed: str
    epoch: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Settled:
    """A site's position in a feed, with its counts of products: of one batch, or the sum of all."""

    feed: str
    epoch: str
    site: str
    settled_to: int
    stored: int = 0
    stored_bytes: int = 0
    duplicates: int = 0
    rejected: int = 0
    expired: int = 0
    late_at_hub: int = 0
    """Products of a feed with a deadline that the hub did not send, as they could not be in time."""
    late_at_site: int = 0
    """Products of such a feed that arrived behind the deadline, and were dropped."""
    last_receipt_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays of records from the hub's log to the site's last byte, by clocks that agree: a sketch of them."""

    count: int
    sum_ms: float
    min_ms: float
    max_ms: float
    negative: int
    bound_ms: float | None
    """The bound of the clocks' offset."""
    buckets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FeedSecond:
    """The records of a feed with a deadline that the hub stored within one second, as one site reports them."""

    feed: str
    site: str
    second: int
    """Since 1970."""
    stored: int = 0
    """At the site in time; those that it had already are among them."""
    late_at_hub: int = 0
    late_at_site: int = 0
    lost: int = 0
    reordered: int = 0
    """They came after one with a higher number (RFC 4737)."""
    jitter_us: int | None = None
    """Interarrival jitter at the end of the second (RFC 3550, section 6.4.1)."""
    delays: Delays | None = None
    """None: the clocks were not compared."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A one-time report of the node: sketches, exceptions, frontiers and seconds since the last batch."""

    id: str
    sketches: tuple[SketchRow, ...] = ()
    exceptions: tuple[ProductException, ...] = ()
    settled: tuple[Settled, ...] = ()
    seconds: tuple[FeedSecond, ...] = ()
