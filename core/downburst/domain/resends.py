"""Resends: stored products that travel to a site again."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from downburst.domain.subscriptions import IdFilter


class ResendKind(StrEnum):
    """Why stored products travel again."""

    RESEND = "resend"
    """On request: every product is delivered once more, whether the site has it or not."""
    BACKFILL = "backfill"
    """A subscription begins in the past: the site drops the products that it already has."""


class ResendState(StrEnum):
    """Where a resend stands."""

    WAITING = "waiting"
    """Not finished; continues whenever the site is connected."""
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Resend:
    """Products of a feed that were stored at the hub in a time range and go to one site again."""

    id: int
    site: str
    feed: str
    from_at: datetime
    to_at: datetime
    kind: ResendKind = ResendKind.RESEND
    wanted: IdFilter = IdFilter()
    had: tuple[IdFilter, ...] = ()
    """The site's subscriptions before a backfill; products that match one of these are left out."""
    state: ResendState = ResendState.WAITING
    requested_at: datetime | None = None
    requested_by: str = ""
    ended_at: datetime | None = None
    products: int = 0
    """Delivered under this resend so far."""
    bytes: int = 0
    expired: int = 0
    """Matched, but the hub has only their descriptions left."""
