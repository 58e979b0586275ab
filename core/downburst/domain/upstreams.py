"""Origins of this hub's products besides its own sources: other hubs, and LDMs."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Upstream:
    """A hub of which this hub is a site: its products go into this hub's own feeds."""

    name: str
    address: str
    """Host and port for its sites."""
    token: str = field(repr=False)
    """Its operator's enrolment token for this hub."""
    feeds: tuple[str, ...] = ()
    """The feeds to take; none: all that exist here and that it sends."""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LdmSource:
    """LDMs that are requested for the same products; these go into the feeds with their feed types."""

    name: str
    feeds: str
    """Feed types, as an expression."""
    upstreams: tuple[str, ...]
    """`HOST[:PORT]`: the first one sends immediately, the others ask before each product; roles change by speed."""
    pattern: str = ".*"
    max_age_s: int = 3600
    """Older products are not accepted, and not requested."""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LdmAccept:
    """Hosts that may push products of these feed types with matching identifiers."""

    id: int
    feeds: str
    pattern: str
    host: str
    created_at: datetime | None = None
