"""Receipts: what the node tells of sites' progress, in batches."""

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
