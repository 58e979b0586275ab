"""Events about circuits."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from downburst.domain.circuits.circuit import CircuitProblem


@dataclass(frozen=True, slots=True)
class CircuitTold:
    """The node reports that an end of a circuit is unreachable, or reachable again, or was removed on time."""

    circuit: int
    site: str | None
    state: Literal["up", "down", "removed"]
    at: datetime
    problem: CircuitProblem | None = None


@dataclass(frozen=True, slots=True)
class CircuitsChanged:
    """A circuit changed its state, was modified or measured again, or a port changed."""

    circuit: int | None = None


CircuitEvent = CircuitTold | CircuitsChanged
