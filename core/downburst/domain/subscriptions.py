"""Subscriptions: the products of a feed that a site wants."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Subscription:
    """A site's request for the products of a feed with an id that matches `pattern` and not `not_pattern`."""

    id: int
    site: str
    feed: str
    pattern: str = ".*"
    not_pattern: str | None = None
    in_order: bool = False
    """Local software at the site sees live products in the order of their sequences; see `hold_s`."""
    hold_s: float = 2.0
    """The time for which a missing product holds back later ones, if `in_order`; after that it follows late."""
    max_age_s: float | None = None
    """Products stored at the hub longer ago than this are no longer sent; they expire for the site."""
    start_at: datetime | None = None
    """The site gets products stored from then on; None: from the moment of the subscription."""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IdFilter:
    """Product ids that match `pattern` and not `not_pattern`."""

    pattern: str = ".*"
    not_pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """Restricts a site to the products of a feed that match `pattern` (OK) and not `not_pattern` (NOT).

    An allowed feed without a limit may be taken whole; of several limits to one feed, each adds its products.
    """

    feed: str
    pattern: str = ".*"
    not_pattern: str | None = None
