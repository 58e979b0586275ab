"""Feeds, and orders to use one transport for them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field

from downburst.domain import feeds as feeds_domain
from downburst.domain import plans as plans_domain
from downburst.domain.backlog import CatchUpChanged
from downburst.domain.feeds import DuplicateRule, Durability, FeedClass
from downburst.domain.plans import Transport
from downburst.domain.receipts import Settled
from downburst.ldm.feed_types import parse_feed_type
from downburst_contract.base import Answer, Bytes, Shape, members


def _is_feed_type(text: str) -> str:
    parse_feed_type(text)
    return text


FeedType = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_is_feed_type)]
"""LDM's feed types, as an expression."""
LdmPattern = Annotated[str, Field(min_length=1, max_length=255)]


class FeedChange(Shape):
    """Properties of a feed; those left out keep their value (PATCH) or take the default (POST, PUT)."""

    feed_class: Annotated[FeedClass | None, Field(alias="class")] = None
    retention_hours: Annotated[float, Field(gt=0, le=24 * 366)] | None = None
    retention_bytes: Bytes | None = None
    objective_ms: Annotated[float, Field(gt=0, le=86_400_000)] | None = None
    duplicate_rule: DuplicateRule | None = None
    durability: Durability | None = None
    max_product_bytes: Bytes | None = None
    ldm_feed_type: FeedType | None = None
    """LDM's feed types of its products; null: LDMs neither bring nor get them."""
    ldm_pattern: LdmPattern | None = None
    deadline_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    """Products that can't be at a site this long after the hub stored them are dropped and counted, milliseconds;
    null: an ordinary feed."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"ldm_feed_type", "ldm_pattern", "deadline_ms"}

    def given(self) -> dict[str, Any]:
        """What the client said, by the model's names."""
        return self.model_dump(exclude_unset=True)


class FeedNew(FeedChange):
    """A feed to make."""

    feed: str

    def to_model(self) -> feeds_domain.Feed:
        """The feed with defaults for what was left out."""
        given = self.given()
        if given.get("ldm_feed_type") is not None:
            # What several LDMs bring is the same if they say so, and requests are resumed by that.
            given.setdefault("duplicate_rule", DuplicateRule.SIGNATURE)
        return feeds_domain.Feed(given.pop("feed"), **given)


class Feed(Answer):
    """A named stream of products."""

    feed: str
    feed_class: Annotated[FeedClass, Field(alias="class")]
    retention_hours: float
    retention_bytes: int
    objective_ms: float
    duplicate_rule: DuplicateRule
    durability: Durability
    max_product_bytes: int
    unicast_leg: int | None
    """The leg that serves sites by unicast."""
    created_at: datetime | None
    ldm_feed_type: str | None
    """LDM's feed types of its products; null: LDMs neither bring nor get them."""
    ldm_pattern: str | None
    """Of these types, the products whose identifier matches; null: all."""
    deadline_ms: int | None
    """Products that can't be at a site this long after the hub stored them are dropped and counted, milliseconds;
    null: an ordinary feed."""

    @classmethod
    def of(cls, feed: feeds_domain.Feed) -> Self:
        """A feed for clients."""
        return cls(**members(feed, feed="name"))


class CatchUp(Answer):
    """A stream that brought several sites what they all lacked of a feed after an outage."""

    leg: int
    """Its number, as of a leg."""
    live_leg: int
    """The leg that it ran beside."""
    state: Literal["began", "ended"]
    at: datetime
    """The time of this state."""
    sites: list[str]
    """Those that were offered it; at the end those that received it."""
    from_sequence: int
    to_sequence: int
    lacked_bytes: int
    """The bytes that the sites lacked of the range together."""
    sent_bytes: int
    """Payload of the stream, with repairs; 0 before its end."""
    saved_bytes: int
    """The bytes that a copy for each site would have needed beyond the stream's; 0 before its end."""
    sentence: str
    """The price by one stream and by copies; at the end, the result."""

    @classmethod
    def of(cls, changed: CatchUpChanged) -> Self:
        """A stream for clients."""
        return cls(**{**members(changed, without=("feed",)), "sites": list(changed.sites)})


class Outcomes(Answer):
    """The outcomes of a feed's products at one site, as its receipts report them: of all that the hub stored since
    the site took the feed, each product has one."""

    site: str
    stored: int
    duplicates: int
    """The site already had them."""
    late_at_hub: int
    """Of a feed with a deadline: not sent, as they could not be in time."""
    late_at_site: int
    """Of a feed with a deadline: they came behind it, and the site dropped them."""
    expired: int
    """They left the hub's log before the site got them."""
    rejected: int
    """Their bytes did not match their digest three times."""

    @classmethod
    def of(cls, site: str, settled: Iterable[Settled]) -> Self:
        """The sums over the epochs of the feed's log."""
        rows = list(settled)
        names = ("stored", "duplicates", "late_at_hub", "late_at_site", "expired", "rejected")
        return cls(site=site, **{name: sum(getattr(row, name) for row in rows) for name in names})


class RecordDelays(Answer):
    """Delays of records from the hub's log to their last byte at the site, corrected by the offset of the clocks."""

    min_ms: float
    median_ms: float
    p99_ms: float
    max_ms: float
    bound_ms: float | None
    """The bound of that offset."""
    negative: int
    """Records with a negative delay: the clocks are further apart than was measured."""


class FeedSecond(Answer):
    """The records of a feed with a deadline that the hub stored within one second, as one site reports them."""

    site: str
    second: int
    """Its number since 1970."""
    at: datetime
    """Its beginning by the hub's clock."""
    stored: int
    """In time at the site."""
    late_at_hub: int
    """Not sent, as they could not be in time."""
    late_at_site: int
    """They came behind the deadline, and the site dropped them."""
    lost: int
    """They left the hub's log before the site got them, or their bytes did not match their digest."""
    reordered: int
    """Stored ones that came after one with a higher number (RFC 4737)."""
    delay: RecordDelays | None
    """Of the stored ones; null: none, or the clocks were not compared."""
    jitter_ms: float | None
    """Interarrival jitter at the end of the second (RFC 3550)."""


class PinNew(Shape):
    """A transport to use whatever the scheduler thinks."""

    transport: Transport
    by: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Who is named as the one who asked; whoever asks, if left out."""


class Pin(Answer):
    """An operator's order to use one transport for a feed."""

    feed: str
    transport: Transport
    by: str
    at: datetime

    @classmethod
    def of(cls, pin: plans_domain.Pin) -> Self:
        """A pin for clients."""
        return cls(**members(pin))
