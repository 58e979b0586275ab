"""Subscriptions of sites to feeds."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from downburst.domain import subscriptions
from downburst_contract.base import Answer, Pattern, Shape, members


class SubscriptionNew(Shape):
    """Products of a feed whose id matches `pattern` (extended regex, searched) and not `not_pattern`."""

    feed: str
    pattern: Pattern = ".*"
    not_pattern: Pattern | None = None
    in_order: bool = False
    hold_s: Annotated[float, Field(ge=0, le=3600)] = 2.0
    max_age_s: Annotated[float, Field(gt=0, le=366 * 86_400)] | None = None
    start: Annotated[str, Field(max_length=64)] = "now"
    """`now`, RFC 3339 with an offset, or how long ago: `2h`."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"not_pattern", "max_age_s"}


class Subscription(Answer):
    """A site's wish for the products of a feed whose id matches `pattern` and not `not_pattern`."""

    id: int
    site: str
    feed: str
    pattern: str
    not_pattern: str | None
    in_order: bool
    """Local software at the site sees live products in the order of their sequences; see `hold_s`."""
    hold_s: float
    """How long a missing product holds back the later ones, if `in_order`."""
    max_age_s: float | None
    """Products stored at the hub longer ago than this are not sent any more."""
    start_at: datetime | None
    created_at: datetime | None

    @classmethod
    def of(cls, subscription: subscriptions.Subscription) -> Self:
        """A subscription for clients."""
        return cls(**members(subscription))
