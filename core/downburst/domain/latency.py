"""Latencies: their kinds, and their sketches by minute."""

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
