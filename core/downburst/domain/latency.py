"""Latencies: their kinds, how certain they are, and their sketches by minute."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from downburst.domain.plans import Transport


class LatencyKind(StrEnum):
    """Between which stamps a latency lies."""

    DISTRIBUTION = "distribution"
    """From storage at the hub to storage at the site."""
    END_TO_END = "end-to-end"
    """From creation at the origin to storage at the site."""
    QUEUEING = "queueing"
    """From storage at the hub to the first byte sent; the part of distribution caused by the hub itself."""
    ACTION = "action"
    """From storage at the site to the file that local software sees."""


class Certainty(StrEnum):
    """How far a latency can be trusted, by the bound of the clocks that measured it."""

    KNOWN = "known"
    NOT_KNOWN = "not known"
    """The bound exceeds half of the value."""
    CLOCK = "clock"
    """The value is negative: a clock is wrong."""


def certainty_of(value_ms: float | None, bound_ms: float | None) -> Certainty | None:
    """The certainty of a latency; no bound means that one clock took both stamps. None without a value."""
    if value_ms is None:
        return None
    if value_ms < 0:
        return Certainty.CLOCK
    is_wide = bound_ms is not None and bound_ms > value_ms * WIDEST_SHARE
    return Certainty.NOT_KNOWN if is_wide else Certainty.KNOWN


@dataclass(frozen=True, slots=True)
class SiteClock:
    """The state of a site's own clock, by its kernel."""

    synchronised: bool
    """A daemon keeps it in step."""
    error_us: int
    """The largest error (`maxerror` of adjtimex(2)); it grows without a daemon."""
    estimated_error_us: int
    """The error that the daemon expects (`esterror`)."""
    daemon: str | None = None
    """The program that disciplines it; None: the site sees none."""


@dataclass(frozen=True, slots=True)
class SketchRow:
    """Latencies of one feed, site, transport, kind and minute, as a mergeable sketch."""

    feed: str
    site: str
    transport: Transport
    kind: LatencyKind
    minute: int
    """Minutes since 1970."""
    count: int
    sum_ms: float
    min_ms: float
    max_ms: float
    negative: int
    bound_ms: float | None
    buckets: Mapping[str, int]


WIDEST_SHARE = 0.5
"""A value is known if its bound is at most this share of it."""
QUARTER_MINUTES = 15
"""Length of a step of histories of a day, aligned to the clock."""
