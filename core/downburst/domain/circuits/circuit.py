"""The terms of circuits: ports, ends, windows, states, events, measurements.

Every rate is Ethernet-frame bits per second, the unit of a policer. Directions are seen from the near end, the
hub's or that of the nearer of two sites: `out` to the far ends, `in` from each of them. A window is half-open:
[begin, end), in UTC.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from downburst.domain.circuits.states import STANDING, CircuitCreation, CircuitState, PathOrder


class CircuitDriver(StrEnum):
    """Who makes a circuit."""

    LINUX = "linux"
    """The nodes at its ends: VXLAN or VLAN, shaping, addresses and routes."""
    DECLARED = "declared"
    """A third party; its interface and addresses exist and are only checked and measured."""
    NSI = "nsi"
    """A provider of another network, which is asked by NSI; the nodes set up the ends that it grants."""


class CircuitShape(StrEnum):
    """The number of ends of a circuit: two, or several at once."""

    POINT_TO_POINT = "point-to-point"
    MULTIPOINT = "multipoint"


class Replication(StrEnum):
    """Who makes the copies of a multipoint circuit."""

    HEAD_END = "head-end"
    """The hub: its port carries the rate once for every site."""
    UNDERLAY = "underlay"
    """A group of the underlying network: the hub's port carries the rate once."""


class Cap(StrEnum):
    """What happens to bytes beyond the rate."""

    HARD = "hard"
    """They wait or are dropped."""
    SOFT = "soft"
    """They go after all other traffic, marked as less than best effort (RFC 8622)."""


class Direction(StrEnum):
    """Seen from the near end."""

    OUT = "out"
    IN = "in"


@dataclass(frozen=True, slots=True)
class Port:
    """An end point of circuits: a port of the hub's host or of a site's, with its reservable rate."""

    name: str
    rate_bps: int
    """The rate that circuits may reserve, in each direction."""
    site: str | None = None
    """The owner of the port; None: this hub."""
    interface: str = ""
    """Its name on the host."""
    underlay: str = ""
    """Its address, the end point of the linux driver's tunnels."""
    stp: str = ""
    """Its name in the network's topology, such as urn:ogf:network:..., if it has one."""
    first_vlan: int | None = None
    """The VLAN tags available to circuits there; None: circuits are untagged."""
    last_vlan: int | None = None
    port_rate_bps: int | None = None
    """The speed of the port itself, in each direction; None: not given."""
    sender: str | None = None
    """The hub's sender on whose host it is; None: the hub's own node, or it is a site's."""
    created_at: datetime | None = None

    @property
    def host(self) -> str:
        """The host that has it."""
        return self.site or (f"the sender {self.sender}" if self.sender else "the hub")


@dataclass(frozen=True, slots=True)
class CircuitEnd:
    """One end of a circuit."""

    port: str
    site: str | None = None
    """The owner of the port; None: this hub."""
    first_vlan: int | None = None
    """The requested tags; None: any that the port offers."""
    last_vlan: int | None = None
    vlan: int | None = None
    """The assigned tag; None: untagged, or not admitted yet."""
    address: str | None = None
    """Inside the circuit, with its prefix length; assigned at the beginning, or declared."""


@dataclass(frozen=True, slots=True)
class CircuitHop:
    """A link of the topology on the path of a circuit, from the hub on."""

    link: str
    forward: bool
    """True if the path takes it from its end `a` to its end `z`."""
    tag: int | None = None
    """The tag there; None: untagged."""


@dataclass(frozen=True, slots=True)
class CircuitRequest:
    """The origin of a circuit: the client, its purpose, and its names for the request."""

    request_id: str
    """The client's name for its request: a repeated one refers to the same circuit."""
    description: str = ""
    ticket: str = ""
    """The reference of the third party that set it up."""
    requested_by: str = "operator"
    asked_sha256: str = ""
    """Hash of the original request, to tell a repeated one from a different one under the same name."""
    creation: CircuitCreation = CircuitCreation.AUTOMATIC
    include: tuple[str, ...] = ()
    """Links and switches that its path must pass."""
    exclude: tuple[str, ...] = ()
    """Links and switches that its path must not pass."""
    path_order: PathOrder = PathOrder.SHORTEST


@dataclass(frozen=True, slots=True)
class CircuitCarriage:
    """The set-up of a circuit, and the shaping of traffic into it."""

    driver: CircuitDriver = CircuitDriver.LINUX
    replication: Replication = Replication.HEAD_END
    group: str | None = None
    """The group of the underlay, if that replicates."""
    cap: Cap = Cap.HARD
    shaped_share: float = 0.9
    """The maximum sent into it, as a share of its rate: at the rate itself a small buffer or a policer drops."""
    burst_bytes: int | None = None
    """The maximum sent back to back; None: chosen by the node by the rate."""
    provider: str | None = None
    """The record of the provider that is asked; None for other drivers."""


@dataclass(frozen=True, slots=True)
class CircuitOverride:
    """A state that an administrator has set against that of the probes."""

    state: CircuitState
    """ACTIVE or DOWN."""
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class Circuit:
    """A rate-guaranteed path between the hub and one site or several, or between two sites, for a window."""

    number: int
    request: CircuitRequest
    ends: tuple[CircuitEnd, ...]
    """The near one first: the hub's, or of two sites that of the nearer one."""
    rate_out_bps: int
    rate_in_bps: int
    begin: datetime
    end: datetime | None
    """None: until it is cancelled."""
    carriage: CircuitCarriage = CircuitCarriage()
    state: CircuitState = CircuitState.REQUESTED
    reason: str = ""
    """The reason for this state, in a sentence."""
    since: datetime | None = None
    created_at: datetime | None = None
    path: tuple[CircuitHop, ...] = ()
    """Empty: only its ports and their hosts are reserved."""
    held_until: datetime | None = None
    """The moment at which a held one expires; None in all other states."""
    override: CircuitOverride | None = None

    def flat(self) -> dict[str, Any]:
        """Its values and those of its parts on one level, as the ledger, the audit and clients have them."""
        return {
            "number": self.number,
            "request_id": self.request.request_id,
            "ends": self.ends,
            "path": self.path,
            "rate_out_bps": self.rate_out_bps,
            "rate_in_bps": self.rate_in_bps,
            "begin": self.begin,
            "end": self.end,
            **asdict(self.carriage),
            **asdict(self.request),
            "state": self.state,
            "reason": self.reason,
            "since": self.since,
            "created_at": self.created_at,
            "held_until": self.held_until,
            "overridden": self.overridden,
            "override_reason": self.override.reason if self.override else None,
            "override_by": self.override.by if self.override else None,
        }

    @property
    def creation(self) -> CircuitCreation:
        """The time of its path's creation: automatic, or by hand."""
        return self.request.creation

    @property
    def overridden(self) -> CircuitState | None:
        """ACTIVE or DOWN as set by an administrator; None: the probes' state counts."""
        return self.override.state if self.override else None

    @property
    def usable_state(self) -> CircuitState:
        """The state that decides whether feeds may use it; an override takes it away from them and never gives it.

        Whoever sends into circuits goes by this one, not by `state` or `shown_state`.
        """
        is_taken = self.overridden is CircuitState.DOWN and self.state in STANDING
        return CircuitState.DOWN if is_taken else self.state

    @property
    def shown_state(self) -> CircuitState:
        """The state for people: an override to active hides probes that call it degraded, and nothing worse."""
        is_hidden = self.overridden is CircuitState.ACTIVE and self.state is CircuitState.DEGRADED
        return CircuitState.ACTIVE if is_hidden else self.usable_state

    @property
    def usable_reason(self) -> str:
        """The reason for the usable state, in a sentence."""
        return self._reason_of(self.usable_state)

    @property
    def shown_reason(self) -> str:
        """The reason for the shown state, in a sentence."""
        return self._reason_of(self.shown_state)

    @property
    def shape(self) -> CircuitShape:
        """By the number of its sites."""
        return CircuitShape.POINT_TO_POINT if len(self.ends) == 2 else CircuitShape.MULTIPOINT

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites at its ends."""
        return tuple(end.site for end in self.ends if end.site is not None)

    @property
    def near_site(self) -> str | None:
        """The site of the near end; None: that is the hub's, so the hub may send products into it."""
        return self.ends[0].site

    @property
    def far_sites(self) -> tuple[str, ...]:
        """The sites of the far ends."""
        return tuple(end.site for end in self.ends[1:] if end.site is not None)

    @property
    def passes(self) -> bool:
        """True if both its ends are other networks', so that nodes of ours join its hops and none has an end."""
        return not self.sites

    @property
    def served_sites(self) -> tuple[str, ...]:
        """The sites that the hub itself reaches over it; none of a circuit between two sites."""
        return self.far_sites if self.near_site is None else ()

    def _reason_of(self, state: CircuitState) -> str:
        if self.override is None or state is self.state:
            return self.reason
        return f"overridden by {self.override.by}: {self.override.reason}"

    def rate_bps(self, direction: Direction) -> int:
        """The rate reserved in a direction, for each site."""
        return self.rate_out_bps if direction is Direction.OUT else self.rate_in_bps

    def over_at(self, instant: datetime) -> bool:
        """True if the window has passed."""
        return self.end is not None and self.end <= instant


@dataclass(frozen=True, slots=True)
class CircuitChange:
    """The modifiable properties; those left out stay."""

    rate_out_bps: int | None = None
    rate_in_bps: int | None = None
    begin: datetime | None = None
    """While the window has not begun."""
    end: datetime | None = None
    burst_bytes: int | None = None
    until_cancelled: bool = False
    """Extends the window until the circuit is cancelled."""


@dataclass(frozen=True, slots=True)
class CircuitAnswer:
    """The result of a request, or the result that it would have."""

    circuit: Circuit
    done: bool = True
    """False: it was a dry run, or had been done before."""


@dataclass(frozen=True, slots=True)
class CircuitEvent:
    """An event of a circuit."""

    circuit: int
    at: datetime
    event: str
    state: CircuitState
    """The state after it."""
    sentence: str
    step: str = ""
    """For a failure: the step that failed."""
    hop: str = ""
    """For a failure: its place."""
    remedy: str = ""
    """For a failure: the remedy."""
    by: str = "hub"


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of the last probe of one end in one direction."""

    circuit: int
    site: str
    direction: Direction
    at: datetime
    rate_bps: int
    """The measured rate of the circuit."""
    reserved_bps: int
    loss_share: float = 0.0
    round_trip_us: int | None = None
    cause: str = ""
    """Cause of a shortfall: policer, slow-segment, unprotected-segment, small-buffer, cut or unclear."""
    sentence: str = ""
    remedy: str = ""

    @property
    def enough(self) -> bool:
        """True if it may carry feeds."""
        return self.rate_bps >= LEAST_SHARE * self.reserved_bps


@dataclass(frozen=True, slots=True)
class CircuitProblem:
    """The reason why an end could not be set up or reached, with its place, step and remedy."""

    sentence: str
    step: str = ""
    hop: str = ""
    remedy: str = ""
    site: str | None = None
    """The site of the end; None: the hub's end."""


@dataclass(frozen=True, slots=True)
class CircuitUse:
    """Bytes of frames that passed a circuit's end since the last report."""

    circuit: int
    site: str | None
    """The site of the far end; None: all bytes that the hub sent into it."""
    out_bytes: int
    in_bytes: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A node's report on a lease."""

    circuit: int
    state: str
    """up, partial or failed."""
    took_ms: float = 0.0
    problems: tuple[CircuitProblem, ...] = ()
    """Problems of the ends that are away or failed."""


@dataclass(frozen=True, slots=True)
class ReachProbe:
    """The result of five packets there and back."""

    site: str
    sent: int
    received: int
    round_trip_us: int | None = None
    """The median."""


@dataclass(frozen=True, slots=True)
class RateProbe:
    """The result of a train of packets sent through a circuit at a steady rate."""

    site: str
    direction: Direction
    sent: int
    received: int
    offered_bps: float
    received_bps: float
    bins_bps: tuple[float, ...] = ()
    """Received in each 50 ms."""
    loss_by_bin: tuple[float, ...] = ()
    """Lost share of the packets sent in each of them."""
    delay_rise_median_us: int = 0
    """One-way delay above the minimum of the train."""
    delay_rise_max_us: int = 0
    burst_sent: int = 0
    """Packets back to back."""
    burst_received: int = 0
    round_trip_us: int | None = None
    others_bps: float = 0.0
    """The rate of products sent through the circuit during the train."""

    @property
    def loss_share(self) -> float:
        """Lost share of the train."""
        return 1 - self.received / self.sent if self.sent else 0.0


@dataclass(frozen=True, slots=True)
class WireTag:
    """The identifier of a circuit's frames on the port of an end: the tag of the hop that begins there."""

    vlan: int | None = None
    vni: int | None = None
    """Of a tunnel; one of the two is set."""
    via: str | None = None
    """The address of the tunnel's other end; None: those of the circuit's other ends."""


@dataclass(frozen=True, slots=True)
class Transit:
    """A node of ours on the path that joins two hops with different tags."""

    port: Port
    near: WireTag
    """Of the hop towards the near end."""
    far: WireTag


@dataclass(frozen=True, slots=True)
class Lease:
    """A node's part of a circuit, as ordered by the hub."""

    circuit: Circuit
    ports: tuple[Port, ...]
    """The ports of its ends, in their order."""
    tags: tuple[WireTag, ...] = ()
    """Of its ends, in their order; empty: its path has no tags, so its tunnel has an identifier of its own."""
    transits: tuple[Transit, ...] = ()
    """From the near end on."""

    @property
    def driver(self) -> CircuitDriver:
        """The nodes' own part: ends granted by NSI are tagged, or used as they are where ports have no tags."""
        driver = self.circuit.carriage.driver
        if driver is not CircuitDriver.NSI:
            return driver
        is_tagged = all(port.first_vlan is not None for port in self.ports)
        return CircuitDriver.LINUX if is_tagged else CircuitDriver.DECLARED


LEAST_SHARE = 0.8
"""Below this share of the reserved rate a circuit is degraded and carries no feeds."""
