"""A group of measurements, and the extent of a run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.harness.report import Row


@dataclass(frozen=True)
class Wanted:
    """The extent of the measurement."""

    runs: int = 3
    quick: bool = False
    notes: list[str] = field(default_factory=list)
    """Remarks on the run: repeated measurements, data that are not at hand."""

    def of(self, quick: int, full: int) -> int:
        """An amount of work."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Group:
    """Rows that one function measures."""

    rows: tuple[str, ...]
    measure: Callable[[Path, Wanted], list[Row]]
    needs: tuple[str, ...] = ()
    """Capabilities of the machine, as `kit.capabilities` names them."""


NETWORK = ("root", "netns", "veth", "bridge", "htb")
WIRES = ("root", "netns", "veth", "bridge", "tun")
