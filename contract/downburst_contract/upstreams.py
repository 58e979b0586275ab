"""Upstreams: the hubs that a hub is a site of."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from downburst.domain import upstreams
from downburst_contract.base import Answer, OpenAnswer, Shape, members


class UpstreamNew(Shape):
    """A hub that this hub becomes a site of."""

    upstream: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]
    address: Annotated[str, Field(pattern=r"^\S+:[0-9]{1,5}$", max_length=260)]
    token: Annotated[str, Field(pattern=r"^dbt1\.[0-9a-fA-F]{64}\.[A-Za-z0-9_-]+$", max_length=512)]
    feeds: Annotated[list[str], Field(max_length=1000, default_factory=list)]


class Upstream(Answer):
    """An upstream, without its token."""

    upstream: str
    address: str
    feeds: list[str]
    """The feeds to take; none: all that exist here and that it sends."""
    created_at: datetime | None

    @classmethod
    def of(cls, upstream: upstreams.Upstream) -> Self:
        """An upstream for clients."""
        return cls(**upstream_members(upstream))


class UpstreamListed(OpenAnswer):
    """An upstream with its state; members after `connected` are left out while the node has not told them."""

    upstream: str
    address: str
    feeds: list[str]
    created_at: datetime | None
    connected: bool
    hub: str | None = None
    """What it calls itself."""
    reason: str | None = None
    stored: int | None = None
    passed_over: int | None = None
    looped: int | None = None


def upstream_members(upstream: upstreams.Upstream) -> dict[str, Any]:
    """The members of an upstream, without its token."""
    return members(upstream, without=("token",), upstream="name")
