"""The words of circuits: ports, ends, windows, states, events, measurements.

Every rate is Ethernet-frame bits per second, which is what a policer counts. Directions are seen from the hub: `out`
to the sites, `in` from each of them. A window is half-open: [begin, end), in UTC.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class CircuitDriver(StrEnum):
    """Who makes a circuit."""

    LINUX = "linux"
    """The nodes at its ends: VXLAN or VLAN, shaping, addresses and routes."""
    DECLARED = "declared"
    """Somebody else; its interface and addresses are there and are only looked at and measured."""


class CircuitShape(StrEnum):
    """How many sites a circuit joins with the hub."""

    POINT_TO_POINT = "point-to-point"
    MULTIPOINT = "multipoint"


class Replication(StrEnum):
    """Who makes the copies of a multipoint circuit."""

    HEAD_END = "head-end"
    """The hub: its port carries the rate once for every site."""
    UNDERLAY = "underlay"
    """A group of the network below: the hub's port carries the rate once."""


class Cap(StrEnum):
    """What happens to bytes beyond the rate."""

    HARD = "hard"
    """They wait or are dropped."""
    SOFT = "soft"
    """They go as best effort while the line is idle."""


class Direction(StrEnum):
    """Seen from the hub."""

    OUT = "out"
    IN = "in"


class CircuitState(StrEnum):
    """Where a circuit is in its life; `downburst_circuits.lifecycle` has the table."""

    REQUESTED = "requested"
    ADMITTED = "admitted"
    """In the calendar; waits for its begin."""
    PROVISIONING = "provisioning"
    VERIFYING = "verifying"
    """It stands; probes have to get through before anything rides on it."""
    ACTIVE = "active"
    DEGRADED = "degraded"
    """Less than 0.8 of the reserved rate was measured, or an end is away."""
    DOWN = "down"
    """It stands, and nothing gets through."""
    FAILED = "failed"
    """It can't be made at the moment; tried again while its window lasts."""
    ENDING = "ending"
    CANCELLING = "cancelling"
    ENDED = "ended"
    CANCELLED = "cancelled"


FINISHED = frozenset({CircuitState.ENDED, CircuitState.CANCELLED})
LEAVING = frozenset({CircuitState.ENDING, CircuitState.CANCELLING})
STANDING = frozenset({CircuitState.VERIFYING, CircuitState.ACTIVE, CircuitState.DEGRADED, CircuitState.DOWN})
"""States in which a node holds the circuit as far as the hub knows."""
WANTED = STANDING | {CircuitState.PROVISIONING, CircuitState.FAILED}
"""States in which a node should hold it."""


@dataclass(frozen=True, slots=True)
class Port:
    """Where circuits end: a port of the hub's host or of a site's, and what of it may be reserved."""

    name: str
    rate_bps: int
    """What circuits may reserve of it, in each direction."""
    site: str | None = None
    """Whose port it is; None: this hub's."""
    interface: str = ""
    """Its name on the host."""
    underlay: str = ""
    """The address on it between which the linux driver lays its tunnels."""
    stp: str = ""
    """Its name in the network's topology, such as urn:ogf:network:..., if it has one."""
    first_vlan: int | None = None
    """The tags that circuits may have there; None: circuits are untagged."""
    last_vlan: int | None = None
    port_rate_bps: int | None = None
    """How fast the port itself is, in each direction; None: nobody said."""
    created_at: datetime | None = None

    @property
    def host(self) -> str:
        """Who to ask about it."""
        return self.site or "the hub"


@dataclass(frozen=True, slots=True)
class CircuitEnd:
    """One end of a circuit."""

    port: str
    site: str | None = None
    """Whose port it is; None: this hub's."""
    first_vlan: int | None = None
    """The tags that were asked for; None: any that the port offers."""
    last_vlan: int | None = None
    vlan: int | None = None
    """The tag it has; None: untagged, or not admitted yet."""
    address: str | None = None
    """Inside the circuit, with its prefix length; given at the begin, or declared."""


@dataclass(frozen=True, slots=True)
class Circuit:
    """A rate-guaranteed path between the hub and one site or several, for a window."""

    number: int
    request_id: str
    """The client's name for its request: the same one again is the same circuit."""
    ends: tuple[CircuitEnd, ...]
    """The hub's first."""
    rate_out_bps: int
    rate_in_bps: int
    begin: datetime
    end: datetime | None
    """None: until it is cancelled."""
    driver: CircuitDriver = CircuitDriver.LINUX
    replication: Replication = Replication.HEAD_END
    group: str | None = None
    """Of the underlay, where that replicates."""
    cap: Cap = Cap.HARD
    shaped_share: float = 0.9
    """What is sent into it at most, as a share of its rate: at the rate itself a small buffer or a policer drops."""
    burst_bytes: int | None = None
    """What may go back to back; None: the node's own choice by the rate."""
    description: str = ""
    ticket: str = ""
    """Under which somebody else made it."""
    requested_by: str = "operator"
    asked_sha256: str = ""
    """Of the request as it came, by which the same request is told from another one under its name."""
    state: CircuitState = CircuitState.REQUESTED
    reason: str = ""
    """Why it is in this state, in a sentence."""
    since: datetime | None = None
    created_at: datetime | None = None

    @property
    def shape(self) -> CircuitShape:
        """By the number of its sites."""
        return CircuitShape.POINT_TO_POINT if len(self.ends) == 2 else CircuitShape.MULTIPOINT

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that it joins with the hub."""
        return tuple(end.site for end in self.ends if end.site is not None)

    def rate_bps(self, direction: Direction) -> int:
        """What is reserved in a direction, for each site."""
        return self.rate_out_bps if direction is Direction.OUT else self.rate_in_bps

    def over_at(self, instant: datetime) -> bool:
        """Whether the window has passed."""
        return self.end is not None and self.end <= instant


@dataclass(frozen=True, slots=True)
class CircuitChange:
    """What a modification may touch; what is left out stays."""

    rate_out_bps: int | None = None
    rate_in_bps: int | None = None
    end: datetime | None = None
    burst_bytes: int | None = None
    until_cancelled: bool = False
    """Lets the window last until the circuit is cancelled."""


@dataclass(frozen=True, slots=True)
class CircuitAnswer:
    """What became of a request, or what would."""

    circuit: Circuit
    done: bool = True
    """False: it was asked only, or had been done before."""


@dataclass(frozen=True, slots=True)
class CircuitEvent:
    """Something that happened to a circuit."""

    circuit: int
    at: datetime
    event: str
    state: CircuitState
    """After it."""
    sentence: str
    step: str = ""
    """For a failure: at what the circuit failed."""
    hop: str = ""
    """For a failure: where."""
    remedy: str = ""
    """For a failure: what to do."""
    by: str = "hub"


@dataclass(frozen=True, slots=True)
class Measured:
    """What the last probe of one end found in one direction."""

    circuit: int
    site: str
    direction: Direction
    at: datetime
    rate_bps: int
    """What the circuit carries by measurement."""
    reserved_bps: int
    loss_share: float = 0.0
    round_trip_us: int | None = None
    cause: str = ""
    """Of a shortfall: policer, slow-segment, unprotected-segment, small-buffer, cut or unclear."""
    sentence: str = ""
    remedy: str = ""

    @property
    def enough(self) -> bool:
        """Whether feeds may ride on it."""
        return self.rate_bps >= LEAST_SHARE * self.reserved_bps


@dataclass(frozen=True, slots=True)
class CircuitProblem:
    """Why an end could not be made or reached: where, at what, and what to do."""

    sentence: str
    step: str = ""
    hop: str = ""
    remedy: str = ""
    site: str | None = None
    """Whose end it is about; None: the hub's."""


@dataclass(frozen=True, slots=True)
class CircuitUse:
    """Bytes of frames that went through a circuit's end since the last time."""

    circuit: int
    site: str | None
    """Whose end; None: all that the hub sent into it."""
    out_bytes: int
    in_bytes: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What a node says of a lease."""

    circuit: int
    state: str
    """up, partial or failed."""
    took_ms: float = 0.0
    problems: tuple[CircuitProblem, ...] = ()
    """Of the ends that are away or failed."""


@dataclass(frozen=True, slots=True)
class ReachProbe:
    """What came of five packets there and back."""

    site: str
    sent: int
    received: int
    round_trip_us: int | None = None
    """The median."""


@dataclass(frozen=True, slots=True)
class RateProbe:
    """What came of a train of packets that was sent through a circuit at a steady rate."""

    site: str
    direction: Direction
    sent: int
    received: int
    offered_bps: float
    received_bps: float
    bins_bps: tuple[float, ...] = ()
    """Received in each 50 ms."""
    loss_by_bin: tuple[float, ...] = ()
    """Share of what was sent in each of them."""
    delay_rise_median_us: int = 0
    """One-way delay over the least of the train."""
    delay_rise_max_us: int = 0
    burst_sent: int = 0
    """Packets back to back."""
    burst_received: int = 0
    round_trip_us: int | None = None
    others_bps: float = 0.0
    """What products sent through the circuit while the train went."""

    @property
    def loss_share(self) -> float:
        """Of the train."""
        return 1 - self.received / self.sent if self.sent else 0.0


@dataclass(frozen=True, slots=True)
class Lease:
    """What a node is told to hold of a circuit."""

    circuit: Circuit
    ports: tuple[Port, ...]
    """Of its ends, in their order."""


LEAST_SHARE = 0.8
"""Below this share of the reserved rate a circuit is degraded and nothing rides on it."""
