"""The calendar of links, hosts and ports, and the rates of a circuit over time.

Rates are bits per second of Ethernet frames. Windows are half-open: [begin, end), in UTC.
"""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from downburst.domain.circuits import CircuitState
from downburst_contract.base import Answer


class ResourceKind(StrEnum):
    """The kind of a resource of the calendar."""

    LINK = "link"
    HOST = "host"
    PORT = "port"


class CalendarResource(Answer):
    """Something that circuits reserve a rate of."""

    key: str
    """Its name in refusals: `link west`, `host unl`, a port by its name alone."""
    kind: ResourceKind
    name: str
    a: str
    """Of a link: the switch or port at its end `a`; of a port: its host, or empty; of a host: empty."""
    z: str
    """Of a link: the switch or port at its end `z`; else empty."""
    owner: str | None
    """The site of a port or host, or the other network that has it; null: this hub, or a link."""
    sender: str | None
    """Of a port on the host of one of the hub's senders, that sender; null: it is elsewhere."""
    rate_out_bps: int
    """Of a link: from `a` to `z`; else: sent."""
    rate_in_bps: int


class CalendarReservation(Answer):
    """A circuit in the calendar."""

    circuit: int
    state: CircuitState
    """As people see it, with an override."""
    held_until: datetime | None
    """When it expires unless it is committed; null: it isn't held."""
    begin: datetime
    end: datetime | None
    """Of a finished circuit the moment at which it finished. Null: until it is cancelled."""
    rate_out_bps: int
    rate_in_bps: int
    near_out_bps: int
    """The rate that its near end sends: a copy for each far end, unless the underlay copies."""
    near_in_bps: int
    description: str
    sites: list[str]
    along: list[int]
    """Places in `resources` with the rate out in their direction out: the near end, links from `a` to `z`."""
    against: list[int]
    """Places in `resources` with the rate out in their direction in: far ends, links from `z` to `a`."""


class CalendarTest(Answer):
    """A test with load, which books its rate for some seconds."""

    number: int
    kind: Literal["test"] = "test"
    """What it is among the reservations of a calendar."""
    test: str
    """The kind of test."""
    begin: datetime
    end: datetime
    rate_out_bps: int
    rate_in_bps: int
    by: str
    circuit: int | None
    """The circuit inside which it runs; null: it has a reservation of its own."""
    along: list[int]
    """Places in `resources` as of a circuit; inside one its ports alone."""
    against: list[int]


class CalendarMaintenance(Answer):
    """A window in which resources take no new reservation."""

    name: str
    reason: str
    begin: datetime
    end: datetime
    resources: list[int]
    """Places in `resources`."""


class Calendar(Answer):
    """The calendar of a window."""

    now: datetime
    begin: datetime
    end: datetime
    resources: list[CalendarResource]
    """Links, then hosts, then ports, each by name."""
    reservations: list[CalendarReservation]
    """The newest first."""
    maintenance: list[CalendarMaintenance]
    tests: list[CalendarTest] | None
    """Running tests and the last of those that are over, the newest first. Null: the part that books them is away."""
    left_out: bool
    """Whether older circuits of the window were left out, as it has too many; ask for a shorter window."""


class CircuitRate(Answer):
    """The rates in use through a circuit, on average of a step."""

    at: datetime
    """The begin of the step."""
    out_bps: float
    """Of the busiest site, as the reservation is per site."""
    in_bps: float


class CircuitRates(Answer):
    """The rates in use through a circuit since the hub started, in steps; steps without traffic are left out."""

    circuit: int
    step_s: int
    since: datetime
    """The begin of the record."""
    until: datetime
    steps: list[CircuitRate]
