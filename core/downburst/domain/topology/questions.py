"""Questions to the reservation desk, and its answers."""

from dataclasses import dataclass
from datetime import datetime

from downburst.domain.circuits import CircuitEnd, CircuitHop, PathOrder
from downburst.domain.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class PathQuestion:
    """A path between a port of the hub and one of a site."""

    hub: CircuitEnd
    far: CircuitEnd
    """By its port, or by a site that has one port."""
    order: PathOrder = PathOrder.SHORTEST
    include: frozenset[str] = frozenset()
    """Links and switches that it must pass."""
    exclude: frozenset[str] = frozenset()
    """Links and switches that it must not pass."""


@dataclass(frozen=True, slots=True)
class WindowQuestion:
    """When can a circuit of these rates have a window of this length?"""

    path: PathQuestion
    rate_out_bps: int
    rate_in_bps: int
    seconds: float
    """The length of the window."""
    first: datetime
    """The earliest begin."""
    last: datetime
    """The latest begin."""


@dataclass(frozen=True, slots=True)
class WindowFound:
    """The first window with room."""

    begin: datetime
    end: datetime
    hub_port: str
    port: str
    path: tuple[CircuitHop, ...] = ()
    """Empty: the topology has no links at these ports, so the ports alone count."""


@dataclass(frozen=True, slots=True)
class WindowAnswer:
    """The answer to a question for a window."""

    sentence: str
    found: WindowFound | None = None
    """None: there is none that begins in time."""


@dataclass(frozen=True, slots=True)
class RateQuestion:
    """How much is free throughout a window?"""

    path: PathQuestion
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class RateAnswer:
    """The free rates of a path throughout a window."""

    sentence: str
    rate_out_bps: int
    rate_in_bps: int
    hub_port: str
    port: str
    path: tuple[CircuitHop, ...] = ()


@dataclass(frozen=True, slots=True)
class TopologyAnswer:
    """A topology that was put, or would be."""

    topology: Topology
    changes: tuple[str, ...]
    """A sentence each."""
    affected: tuple[int, ...] = ()
    """Circuits with a window that reaches into a maintenance of their resources; they stay."""
    done: bool = True
    """False: it was a dry run."""
