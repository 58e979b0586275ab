"""Tests with load: each books its rate on ports and path for its seconds before it sends."""

from dataclasses import dataclass
from datetime import datetime

from downburst.domain.circuits import CircuitEnd, CircuitHop


@dataclass(frozen=True, slots=True)
class KindOfTest:
    """A kind of test, registered by its program."""

    name: str
    purpose: str
    most_bps: int
    """The highest rate of one test, in each direction, in Ethernet-frame bits per second."""
    most_s: float
    """The longest test, in seconds."""
    yields: bool = False
    """True if it ends when a circuit needs its rate."""


@dataclass(frozen=True, slots=True)
class WantedTest:
    """A test that is to run at once."""

    kind: str
    near: CircuitEnd
    """A port, or a site that has one; with neither, the hub's only port."""
    far: CircuitEnd
    rate_out_bps: int
    """The rate from the near end to the far one, in Ethernet-frame bits per second; `rate_in_bps` the other way."""
    rate_in_bps: int
    seconds: float
    circuit: int | None = None
    """The circuit inside which it runs: it uses that reservation. None: it needs free rate."""
    by: str = "hub"


@dataclass(frozen=True, slots=True)
class BookedTest:
    """A test with its place in the calendar."""

    number: int
    wanted: WantedTest
    """With its ports and sites."""
    begin: datetime
    end: datetime
    path: tuple[CircuitHop, ...] = ()


@dataclass(frozen=True, slots=True)
class BookingAnswer:
    """A grant, or the moment of the next attempt. A refusal is raised as an error with its reason."""

    sentence: str
    booking: BookedTest | None = None
    """None: the test has to wait."""
    begin: datetime | None = None
    """The first moment at which it would fit, if it has to wait."""
