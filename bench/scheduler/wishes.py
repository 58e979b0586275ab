"""Command-line options for the row groups of the scheduler."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Wanted:
    """The number of runs of each case, and the seed of the first."""

    runs: int = 3
    seed: int = 1
    stretch_s: float = 600.0
    """The length of the recorded stretch on which predictions and measurements are compared."""
    notes: list[str] = field(default_factory=list)
    """Facts that a reader of the rows needs as well."""
