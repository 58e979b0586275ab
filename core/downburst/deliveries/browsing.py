"""Browsing of a feed's log by the facts that users know: times of arrival and patterns of ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from downburst.deliveries import ProductFacts
from downburst.domain.subscriptions import Limit


@dataclass(frozen=True, slots=True)
class Browse:
    """A selection of products of a feed: all given conditions apply."""

    feed: str
    since: datetime
    """Stored at the hub at this moment or later."""
    until: datetime | None = None
    pattern: str | None = None
    not_pattern: str | None = None
    contains: str | None = None
    """A part of the id, as it is."""
    before: int | None = None
    """Only products before this sequence."""
    limit: int = 20
    count: bool = False
    """Continues after the last listed product, and counts all."""
    limits: tuple[Limit, ...] = ()
    """Of the requesting site: products granted by none of these are neither listed nor counted. Empty: no limits."""


@dataclass(frozen=True, slots=True)
class Browsed:
    """The result."""

    products: tuple[ProductFacts, ...]
    """Newest first."""
    others: tuple[str, ...]
    """The newest ids that do not match."""
    shown: int
    """The number of products examined."""
    matched: int
    matched_bytes: int
    sizes: Mapping[int, int]
    """Those that match by the power of two that their bytes do not exceed."""
    silences: Mapping[int, int]
    """The pauses between them by the power of two that their milliseconds do not exceed."""
    searched_to: int
    complete: bool
    """False: there may be more before `searched_to`."""
