"""LDM: sources that are asked for products, who may push, and who is connected."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from downburst.domain import upstreams as upstreams_domain
from downburst_contract.base import Answer, OpenAnswer, Shape, members
from downburst_contract.feeds import FeedType, LdmPattern

if TYPE_CHECKING:
    from downburst.recordings.recording import Report

_LdmHost = Annotated[str, Field(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\s:]+)(:[0-9]{1,5})?$", max_length=260)]


class LdmSourceNew(Shape):
    """LDMs that are asked for the same products."""

    source: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]
    feeds: FeedType
    pattern: LdmPattern = ".*"
    upstreams: Annotated[list[_LdmHost], Field(min_length=1, max_length=8)]
    max_age_s: Annotated[int, Field(ge=1, le=366 * 86_400)] = 3600

    def to_model(self) -> upstreams_domain.LdmSource:
        """The source."""
        return upstreams_domain.LdmSource(
            self.source, self.feeds, tuple(self.upstreams), self.pattern, self.max_age_s
        )


class LdmAcceptNew(Shape):
    """Hosts that may push products."""

    feeds: FeedType
    pattern: LdmPattern = ".*"
    host: Annotated[str, Field(min_length=1, max_length=500)]

    def to_model(self) -> upstreams_domain.LdmAccept:
        """The line."""
        return upstreams_domain.LdmAccept(0, self.feeds, self.pattern, self.host)


class LdmSource(Answer):
    """LDMs that are asked for the same products."""

    source: str
    feeds: str
    """Feed types, as an expression."""
    upstreams: list[str]
    """`HOST[:PORT]`, the first one primary."""
    pattern: str
    max_age_s: int
    created_at: datetime | None

    @classmethod
    def of(cls, source: upstreams_domain.LdmSource, /, **more: Any) -> Self:
        """A source for clients, with the other members of its shape."""
        return cls(**members(source, source="name"), **more)


class LdmUpstreamState(OpenAnswer):
    """How it stands with one upstream; members after `connected` are left out while the node has not told them."""

    upstream: str
    connected: bool
    mode: str | None = None
    reason: str | None = None
    stored: int | None = None
    bytes: int | None = None
    duplicates: int | None = None
    passed_over: int | None = None
    dropped: int | None = None


class LdmSourceListed(LdmSource):
    """A source with the state of each of its upstreams."""

    state: list[LdmUpstreamState]
    has_feeds: bool
    """Whether each of its feed types belongs to a feed."""


class LdmAccept(Answer):
    """Hosts that may push products of these feed types whose identifiers match."""

    id: int
    feeds: str
    pattern: str
    host: str
    created_at: datetime | None

    @classmethod
    def of(cls, line: upstreams_domain.LdmAccept) -> Self:
        """A line for clients."""
        return cls(**members(line))


class LdmPeer(OpenAnswer):
    """A connected LDM, with the products sent and answered."""

    peer: str | None
    """Its name, if it has one."""
    address: str
    site: str | None
    what: str
    """`feedme`, `notifyme` or `hiya`; empty if it was told nothing."""
    mode: str | None
    products: int
    bytes: int
    answered: int
    """Products behind which it answered."""
    answered_us: int | None
    unacknowledged_bytes: int


class LdmPeers(Answer):
    """Where LDMs connect, and those that are connected."""

    addresses: list[str]
    peers: list[LdmPeer]


class LdmReport(Answer):
    """An rtstats line: how late the products of one feed type were at a host in one hour, by its clock."""

    report: str
    at_us: int
    host: str
    feed: str
    path: str
    products: int
    bytes: int
    mean_latency_s: float

    @classmethod
    def of(cls, report: "Report") -> Self:
        """A report for clients."""
        return cls(report=f"{report.host} {report.feed} {report.path}", **members(report))
