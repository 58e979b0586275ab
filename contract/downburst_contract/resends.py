"""Resends: stored products to a site once more."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from downburst.domain import resends as resends_domain
from downburst.domain.resends import ResendKind, ResendState
from downburst_contract.base import Answer, Pattern, Shape, members


class ResendNew(Shape):
    """Products stored at the hub from `from` to `to` whose id matches, to one site again."""

    site: str
    feed: str
    from_at: Annotated[str, Field(alias="from", max_length=64)]
    """RFC 3339 with an offset, or how long ago: `2h`."""
    to_at: Annotated[str, Field(alias="to", max_length=64)] = "now"
    pattern: Pattern = ".*"
    not_pattern: Pattern | None = None
    by: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Who is named as the one who asked; whoever asks, if left out."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"not_pattern"}


class IdFilter(Answer):
    """Product ids that match `pattern` and not `not_pattern`."""

    pattern: str
    not_pattern: str | None


class ResendRange(Answer):
    """The products of a resend: those of a time range that match the patterns."""

    pattern: str
    not_pattern: str | None
    from_at: Annotated[datetime, Field(alias="from")]
    to_at: Annotated[datetime, Field(alias="to")]


class Resend(ResendRange):
    """Products of a feed that were stored at the hub in a time range and go to one site again."""

    id: int
    site: str
    feed: str
    kind: ResendKind
    had: list[IdFilter]
    """What the site subscribed before a backfill; products that match one of these are left out."""
    state: ResendState
    requested_at: datetime | None
    requested_by: str
    ended_at: datetime | None
    products: int
    """Delivered under this resend so far."""
    bytes: int
    expired: int
    """Matched, but the hub has only the memory of them."""

    @classmethod
    def of(cls, resend: resends_domain.Resend) -> Self:
        """A resend for clients."""
        return cls(**members(resend.wanted), **members(resend, without=("wanted",)))
