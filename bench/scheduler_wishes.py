"""What the command line asks of the scheduler's row groups."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wanted:
    """How often each case is measured, and the seed of the first time."""

    runs: int = 3
    seed: int = 1
