"""What of a feed a site may take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """Of a feed on its allow list a site may take what matches `pattern` (OK) and not `not_pattern` (NOT).

    A feed without a limit may be taken whole; of several to one feed, each adds what it grants.
    """

    feed: str
    pattern: str = ".*"
    not_pattern: str | None = None
