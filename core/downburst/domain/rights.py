"""Rights of a site to a part of a feed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """Restricts a site to the products of a feed that match `pattern` (OK) and not `not_pattern` (NOT).

    An allowed feed without a limit may be taken whole; of several limits to one feed, each adds its products.
    """

    feed: str
    pattern: str = ".*"
    not_pattern: str | None = None
