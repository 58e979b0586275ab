"""Repair between sites: the exchange of a site with its siblings, and the bytes that the hub did not send."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from downburst.domain.relays import siblings
from downburst.domain.relays.siblings import MOST_ADDRESS, UPLOAD_BYTES_PER_DAY, UPLOAD_BYTES_PER_SECOND
from downburst_contract.base import Answer, Shape


class SiblingExchangeWanted(Shape):
    """The exchange of a site. Its siblings learn its address, and it learns theirs."""

    address: Annotated[str, Field(max_length=MOST_ADDRESS)] | None = None
    """HOST:PORT at which siblings reach it; null, or left out: the address of its session, and the port that its
    receiver opened."""
    upload_bytes_per_second: Annotated[int, Field(ge=1_000, le=2**53)] = UPLOAD_BYTES_PER_SECOND
    """The most that it gives to all siblings together."""
    upload_bytes_per_day: Annotated[int, Field(ge=0, le=2**53)] = UPLOAD_BYTES_PER_DAY
    """The most from midnight to midnight, in UTC."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"address"}

    def to_model(self, site: str, *, set_by: str) -> siblings.SiblingExchange:
        """The exchange; refuses an impossible address."""
        return siblings.SiblingExchange(
            site, self.address, self.upload_bytes_per_second, self.upload_bytes_per_day, set_by
        )


class SiblingExchange(Answer):
    """The exchange of a site with its siblings."""

    address: str | None
    """Null: the address of its session, and the port that its receiver opened."""
    upload_bytes_per_second: int
    upload_bytes_per_day: int
    set_by: str
    set_at: datetime | None


class SavedOfFeed(Answer):
    """Products of a feed that siblings gave to a site."""

    feed: str
    products: int
    bytes: int
    """The hub did not have to send them."""


class SiblingSite(Answer):
    """The part of a site in the repair between sites."""

    site: str
    exchange: SiblingExchange | None
    """Null: it is switched off."""
    saved: list[SavedOfFeed]
    saved_bytes: int
