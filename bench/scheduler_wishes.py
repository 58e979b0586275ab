"""What the command line asks of the scheduler's row groups."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Wanted:
    """How often each case is measured, and the seed of the first time."""

    runs: int = 3
    seed: int = 1
    stretch_s: float = 600.0
    """How much of the recorded hour is played where predictions are compared with measurements."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the rows must know besides."""
