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
