"""The use of resources in a view of the calendar: a circuit with its window, as the page draws it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from downburst.domain.circuits import CircuitState


class Occupancy(NamedTuple):
    """A circuit in the calendar; a month has ten thousand, and a tuple is the cheapest to make."""

    circuit: int
    state: CircuitState
    """As people see it, with an override."""
    held_until: datetime | None
    """The moment at which a held one expires; None in all other states."""
    begin: datetime
    end: datetime | None
    """The end of its use: of a finished circuit the moment at which it finished. None: until it is cancelled."""
    rate_out_bps: int
    rate_in_bps: int
    description: str
    copies: int
    """The number of copies that its near end sends: one for each far end, unless the underlay replicates."""
    near_port: str
    far_ports: list[str]
    sites: list[str]
    """Those of its ends, the near one first."""
    forward: list[str]
    """The links on its path, taken from their end `a` to their end `z`."""
    back: list[str]
    """The links on its path, taken from `z` to `a`."""


@dataclass(frozen=True, slots=True)
class View:
    """The circuits of a window."""

    circuits: Iterator[Occupancy]
    """By number, the newest first; each is made when it is asked for, as a heap of them all costs more than they."""
    left_out: bool
    """True if older ones were left out."""
