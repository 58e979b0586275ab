"""Looking through a feed's log by what people know of products: when they came, and what their ids look like."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from downburst.deliveries import ProductFacts
from downburst.domain.rights import Limit


@dataclass(frozen=True, slots=True)
class Browse:
    """Which products of a feed are meant: all that is given holds for each of them."""

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
    """Goes on behind the last that is listed, and counts all."""
    limits: tuple[Limit, ...] = ()
    """Of the site that asks: what none of these grants is neither listed nor counted. None: there are no limits."""


@dataclass(frozen=True, slots=True)
class Browsed:
    """What was found."""

    products: tuple[ProductFacts, ...]
    """Newest first."""
    others: tuple[str, ...]
    """The newest ids that do not match."""
    shown: int
    """So many were looked at."""
    matched: int
    matched_bytes: int
    sizes: Mapping[int, int]
    """Those that match by the power of two that their bytes do not exceed."""
    silences: Mapping[int, int]
    """The pauses between them by the power of two that their milliseconds do not exceed."""
    searched_to: int
    complete: bool
    """False: there may be more before `searched_to`."""
