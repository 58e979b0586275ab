"""Receipts: the node's reports of sites' progress, in batches."""

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
class Batch:
    """A one-time report of the node: sketches, exceptions and frontiers since the last batch."""

    id: str
    sketches: tuple[SketchRow, ...] = ()
    exceptions: tuple[ProductException, ...] = ()
    settled: tuple[Settled, ...] = ()
