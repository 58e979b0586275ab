"""Feeds: named streams of products. Rates of a feed are product bits per second."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from downburst.foundation.names import check_feed_name


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
    """LDM's own rule: its signature, normally the MD5 of the bytes, irrespective of ids."""
    NONE = "none"


class Durability(StrEnum):
    """What an acknowledged product survives: the end of the process, or a power cut (fsync per product)."""

    PROCESS = "process"
    POWER = "power"


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
    """The leg that serves sites by unicast; assigned by the ledger when the feed is created, kept for its life."""
    created_at: datetime | None = None
    ldm_feed_type: str | None = None
    """LDM's feed types of its products, as an expression; None: it is not exchanged with LDMs."""
    ldm_pattern: str | None = None
    """Of these types, the products with a matching identifier; None: all."""
    deadline_ms: int | None = None
    """Products that can't be at a site this long after the hub stored them are dropped and counted; None: an ordinary
    feed, whose products are delivered however late."""

    def __post_init__(self) -> None:
        check_feed_name(self.name)
        if self.objective_ms <= 0:
            object.__setattr__(self, "objective_ms", DEFAULT_OBJECTIVE_MS[self.feed_class])


@dataclass(frozen=True, slots=True)
class FeedLog:
    """The contents of a feed's log."""

    feed: str
    products: int
    bytes: int
    """Disk in use, indexes included."""
    limit_bytes: int
    oldest_us: int | None
    """The time when its oldest product was stored; None: it is empty."""


@dataclass(frozen=True, slots=True)
class TrafficMinute:
    """Arrivals of a feed in one minute."""

    feed: str
    minute: int
    products: int
    bytes: int
    peak_1s_bytes: int


DEFAULT_OBJECTIVE_MS: Mapping[FeedClass, float] = {
    FeedClass.WARNING: 1_000.0,
    FeedClass.OBSERVATION: 2_000.0,
    FeedClass.GRID: 5_000.0,
    FeedClass.BULK: 60_000.0,
}
