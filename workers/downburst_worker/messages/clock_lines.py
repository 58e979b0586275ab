"""The state of a site's own clock, as the node reports it."""

from typing import Any

from downburst.domain.latency import SiteClock
from downburst.foundation.bounds import count, flag, maybe, sentence


def site_clock(line: Any) -> SiteClock:
    """The clock of a session's `site_clock`; OutOfBounds, KeyError, TypeError: malformed."""
    return SiteClock(
        synchronised=flag(line["synchronised"]),
        error_us=count(line["error_us"]),
        estimated_error_us=count(line["estimated_error_us"]),
        daemon=maybe(line["daemon"], sentence),
    )
