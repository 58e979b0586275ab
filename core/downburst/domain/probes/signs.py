"""Events about probes."""

from dataclasses import dataclass
from typing import Literal

from downburst.domain.probes.results import ProbeResult, ProbeSecond


@dataclass(frozen=True, slots=True)
class ProbesChanged:
    """A probe was requested, started, stopped or ended, or a schedule or ceiling changed."""


@dataclass(frozen=True, slots=True)
class ProbeSecondReported:
    """A second of a running probe."""

    name: str
    """The name that the node was given."""
    second: ProbeSecond


@dataclass(frozen=True, slots=True)
class ProbeOver:
    """A probe ended at the node."""

    name: str
    outcome: Literal["done", "stopped", "failed"]
    reason: str | None
    result: ProbeResult


@dataclass(frozen=True, slots=True)
class PathMeasured:
    """The latencies of live products of a feed that a site reported within a second."""

    site: str
    feed: str
    p99_ms: float
    """The greatest one of fewer than a hundred."""
    bound_ms: float
    """They are this near the truth."""


@dataclass(frozen=True, slots=True)
class PathsMeasured:
    """A batch of receipts came, and has these latencies. It may not be in the ledger yet."""

    paths: tuple[PathMeasured, ...]


ProbeEvent = ProbesChanged | ProbeSecondReported | ProbeOver | PathsMeasured
