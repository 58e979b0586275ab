"""The port to the makers of circuits. The controller calls it for each state, and repeats what an end interrupts."""

from dataclasses import dataclass
from typing import Protocol

from downburst.domain.circuits import Circuit, CircuitProblem


@dataclass(frozen=True, slots=True)
class Made:
    """Both ends are set up: probes may begin."""

    took_ms: float


@dataclass(frozen=True, slots=True)
class Removed:
    """Nothing is left of the circuit."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Neither done nor refused; it is asked for again soon."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Broken:
    """It can't be done at the moment; asked again after a pause."""

    problem: CircuitProblem
    pause_s: float = 0.0
    """The least pause before the next attempt, in seconds."""


class CircuitProvider(Protocol):
    """A maker of circuits. Each call may be repeated, by this process or by the next one.

    While the node is away, each raises `NodeAway`; calls for one circuit never overlap.
    """

    async def hold(self, circuit: Circuit) -> None:
        """Holds its part of a circuit that is held here; raises one sentence if it can't, and then holds nothing."""

    async def commit(self, circuit: Circuit) -> None:
        """Reserves what it holds; raises one sentence if it can't: a `CircuitConflict` if it holds nothing more."""

    async def make(self, circuit: Circuit) -> Made | Waiting | Broken:
        """Makes a circuit that is being provisioned, or adopts the one that is there."""

    async def change(self, circuit: Circuit, wanted: Circuit) -> None:
        """Gives a begun circuit other terms; otherwise raises one sentence, and the old terms stay."""

    async def remove(self, circuit: Circuit) -> Removed | Waiting | Broken:
        """Removes all of a circuit, whatever of it exists."""

    def is_held(self, circuit: Circuit) -> bool:
        """True if the node should hold its ends at this moment."""

    def ended(self, circuit: Circuit) -> Broken | None:
        """The reason if the maker itself has ended a circuit that stands."""

    def is_doubted(self, circuit: Circuit) -> bool:
        """True once after each word of the maker that makes probes worthwhile."""
