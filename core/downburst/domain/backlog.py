"""A site's backlog of its feeds, in products, bytes and age; counted by the hub's node, connected or not.

Catch-up by group: streams that bring several sites the backlog that they share.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from downburst.foundation.clock import from_us


@dataclass(frozen=True, slots=True)
class FeedBacklog:
    """A site's backlog of one feed."""

    feed: str
    known: bool
    """False: the site's position is in another log than the hub's, so that the backlog can't be counted."""
    products: int = 0
    """The products at the beginning of its next session, by its present subscriptions."""
    bytes: int = 0
    oldest_us: int | None = None
    """The time when the oldest of them was stored at the hub."""
    lost_products: int = 0
    """Products that left the hub's log before the site had them: they will never arrive."""
    lost_bytes: int = 0
    counting: bool = False
    """The count is in progress: it is a lower bound."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """A site's backlog of all its feeds."""

    products: int
    bytes: int
    oldest_at: datetime | None
    lost_products: int
    lost_bytes: int
    counting: bool

    @staticmethod
    def of(feeds: Iterable[FeedBacklog]) -> "Backlog | None":
        """The sum; None if it is unknown for all feeds."""
        known = [one for one in feeds if one.known]
        if not known:
            return None
        oldest = min((one.oldest_us for one in known if one.oldest_us is not None), default=None)
        return Backlog(
            products=sum(one.products for one in known),
            bytes=sum(one.bytes for one in known),
            oldest_at=None if oldest is None else from_us(oldest),
            lost_products=sum(one.lost_products for one in known),
            lost_bytes=sum(one.lost_bytes for one in known),
            counting=any(one.counting for one in known),
        )

    @property
    def lacks(self) -> bool:
        """True if there is a backlog or a loss."""
        return bool(self.products or self.lost_products)

    def oldest_s(self, now: datetime) -> float:
        """Seconds since the oldest product was stored; 0 without a backlog."""
        return 0.0 if self.oldest_at is None else max((now - self.oldest_at).total_seconds(), 0.0)

    def words(self, now: datetime) -> str:
        """`lacks 4,300 products (1.2 GB), the oldest 12 min old; 17 left the log before delivery`."""
        least = "at least " if self.counting else ""
        sentence = f"lacks {least}{_products(self.products)}"
        if self.products:
            sentence += f" ({_size(self.bytes)}), the oldest {_age(self.oldest_s(now))} old"
        if self.lost_products:
            sentence += f"; {_products(self.lost_products)} ({_size(self.lost_bytes)}) left the log before delivery"
        return sentence


def _products(count: int) -> str:
    return f"{count:,} product{'' if count == 1 else 's'}"


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _age(seconds: float) -> str:
    for unit, length in (("days", 2 * 86_400), ("h", 2 * 3_600), ("min", 120)):
        if seconds >= length:
            return f"{seconds / _LENGTHS[unit]:.0f} {unit}"
    return f"{seconds:.0f} s"


_LENGTHS = {"days": 86_400, "h": 3_600, "min": 60}


@dataclass(frozen=True, slots=True)
class CatchUpChanged:
    """A stream that brings several sites what they all lack of a feed began or ended."""

    feed: str
    leg: int
    """Its number, as of a leg."""
    live_leg: int
    """The leg that it runs beside."""
    state: Literal["began", "ended"]
    at: datetime
    sites: tuple[str, ...]
    """At the beginning those that were offered it, at the end those that received it."""
    from_sequence: int
    to_sequence: int
    lacked_bytes: int
    """The bytes that the sites lacked of the range together."""
    sent_bytes: int
    """UDP payload of the stream, with repairs; 0 at the beginning."""
    saved_bytes: int
    """The bytes that a copy for each site would have needed beyond the stream's; 0 at the beginning."""
    sentence: str


def is_catch_up(leg: int) -> bool:
    """True for the number of a stream."""
    return leg >= FIRST_CATCH_UP


FIRST_CATCH_UP = 1 << 30
"""The number of a stream is this plus that of its live leg; the ledger gives legs numbers below it."""
