"""What happens in a hub, as typed values that travel over the bus."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from downburst.domain.access import Caller
from downburst.domain.backlog import FeedBacklog
from downburst.domain.circuits import CircuitProblem, CircuitUse
from downburst.domain.plans import Plan, Transport


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """A site's control connection came, went or was refused."""

    site: str
    """Empty: a stranger's, which proved to be no site."""
    state: Literal["connected", "closed", "refused"]
    at: datetime
    peer: str
    reason: str | None = None
    software: str | None = None
    stand_by: bool = False
    """Another hub serves the site."""
    renews: bool = False
    """Its receiver can replace its credential by itself."""
    sender: str = ""
    """The sender it is connected to; empty: the hub's own node."""


@dataclass(frozen=True, slots=True)
class SiteViolated:
    """A site said what can't be: its session ended for it, or that one value does not count."""

    site: str
    at: datetime
    sentence: str


@dataclass(frozen=True, slots=True)
class LdmViolated:
    """An LDM peer said what can't be: its connection ended."""

    peer: str
    at: datetime
    sentence: str
    source: str | None = None
    """The source whose upstream it is; None: it called this hub."""
    site: str | None = None
    """The site whose LDM it is, where one is known."""


@dataclass(frozen=True, slots=True)
class UpstreamChanged:
    """The connection to a hub that this hub is a site of came, went or was refused."""

    upstream: str
    state: Literal["connected", "closed", "refused"]
    at: datetime
    hub: str | None = None
    """What the other hub calls itself."""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LdmSourceChanged:
    """The connection to an LDM that is asked for products came, went or was refused."""

    source: str
    upstream: str
    state: Literal["connected", "closed", "refused"]
    at: datetime
    mode: str = ""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LdmPeerChanged:
    """A connection of an LDM to this hub came, went or was refused."""

    peer: str
    state: Literal["connected", "closed", "refused"]
    at: datetime
    what: str = ""
    """`feedme`, `notifyme` or `hiya`; empty if it was told nothing."""
    site: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LegChanged:
    """A site joined or left a leg, or never heard the group of one."""

    feed: str
    leg: int
    site: str
    state: Literal["joined", "left", "never-heard", "too-slow"]
    at: datetime
    after: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FeedTraffic:
    """Arrivals of one feed since the last traffic event."""

    feed: str
    products: int
    bytes: int
    sizes: tuple[int, ...]
    """At most 64 samples of product sizes in bytes."""
    head: int
    epoch: str = ""
    """Of the head; empty: not told."""


@dataclass(frozen=True, slots=True)
class LegTraffic:
    """What one leg sent since the last traffic event."""

    leg: int
    feed: str
    egress_bytes: int
    repair_bytes: int
    products: int
    product_bytes: int
    sites: int
    backlog_bytes: int
    transport: Transport = Transport.UNICAST

    @property
    def unicast_equivalent_bytes(self) -> int:
        """What these products would weigh if each site got its own copy; a unicast leg counts copies already."""
        copies = self.sites if self.transport is Transport.MULTICAST else 1
        return self.product_bytes * copies


@dataclass(frozen=True, slots=True)
class ActionFailed:
    """What the site's own rules could not do with a product."""

    rule: str
    """The file and the line."""
    exit: int | None
    """Of the program, or minus the signal that ended it; None if none ended."""
    last_error: str
    product: str
    sequence: int
    epoch: str | None = None
    """Of the hub's log that gave the numbers; None: the site's log does not name one."""
    count: int = 1
    """For how many products of the feed rules failed and nobody at the site looked after it; this one counts."""
    others: tuple[int, ...] = ()
    """The numbers of the newest of the others."""


@dataclass(frozen=True, slots=True)
class SiteProgress:
    """How far a site is with one feed."""

    feed: str
    settled_to: int
    pending: int
    transport: Transport
    leg: int
    trouble: str | None = None
    """Why the site stores nothing of the feed at the moment, in its words."""
    late: int = 0
    """Products that local software saw after a later one, against the order it asked for, since the site started."""
    action_failed: ActionFailed | None = None
    """The newest failure of the site's own rules that nobody there has looked after."""
    heartbeat_us: int | None = None
    """When the newest heartbeat was put in that came out at the site's end."""
    heartbeat_waits_us: int | None = None
    """When the oldest heartbeat was put in that did not come out."""
    heartbeat_waited_us: int | None = None
    """How long the node had waited for that one when it reported, on its own clock."""


@dataclass(frozen=True, slots=True)
class Streams:
    """A session's data connections."""

    open: int
    planned: int
    reason: str
    """Why so many: a sentence of the node's."""


@dataclass(frozen=True, slots=True)
class TcpPath:
    """What the hub's kernel knows of a session's connections together."""

    least_round_trip_us: int | None
    """Of the last minutes, without what waits in buffers."""
    sent_segments: int
    """With data, since the connections began; those that were sent again count again."""
    resent_segments: int
    rate_bps: int
    """How fast the site took bytes of late."""
    is_lower_bound: bool
    """Nothing more was there to be sent, so that the path may carry more."""
    congestion: str
    """The name of the congestion control."""
    path_mtu_bytes: int | None = None
    """The longest IP packet that comes through whole."""


@dataclass(frozen=True, slots=True)
class SessionTraffic:
    """A connected site's clock, path and progress."""

    site: str
    clock_offset_us: int | None
    clock_bound_us: int | None
    round_trip_us: int | None
    feeds: tuple[SiteProgress, ...]
    streams: Streams | None = None
    path: TcpPath | None = None


@dataclass(frozen=True, slots=True)
class TrafficSeen:
    """A second of the node's counters."""

    from_us: int
    to_us: int
    feeds: tuple[FeedTraffic, ...]
    legs: tuple[LegTraffic, ...]
    sessions: tuple[SessionTraffic, ...]
    """Those of which something changed, and a few others; who is not here stands where it stood."""
    control_bytes: int
    circuits: tuple[CircuitUse, ...] = ()
    gone: frozenset[str] = frozenset()
    """Sites whose session ended before."""
    sender: str = ""
    """The sender that counted; empty: the hub's own node."""

    @property
    def seconds(self) -> float:
        """The real time that the counts stand for, never zero."""
        return max(self.to_us - self.from_us, 1) / 1e6

    @property
    def egress_bps(self) -> float:
        """What left for sites, in bits per second."""
        return (sum(leg.egress_bytes for leg in self.legs) + self.control_bytes) * 8 / self.seconds


@dataclass(frozen=True, slots=True)
class SiteBacklog:
    """What a site lacks of each feed that it takes."""

    site: str
    feeds: tuple[FeedBacklog, ...]


@dataclass(frozen=True, slots=True)
class BacklogSeen:
    """What sites lack, as the node counted it; who is not here lacks what it lacked."""

    sites: tuple[SiteBacklog, ...]
    sender: str = ""
    """The sender that counted, of the feeds that it serves; empty: the hub's own node."""


@dataclass(frozen=True, slots=True)
class PlanMade:
    """The scheduler stored a plan."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class PinChanged:
    """An operator pinned or unpinned the transport of a feed."""

    feed: str


@dataclass(frozen=True, slots=True)
class BatchReady:
    """The node wrote a batch file that waits to be loaded."""

    batch: str
    path: Path


@dataclass(frozen=True, slots=True)
class BatchLoaded:
    """A batch is in the ledger."""

    batch: str


@dataclass(frozen=True, slots=True)
class FaultSeen:
    """Something an operator should see."""

    at: datetime
    sentence: str
    feed: str | None = None
    site: str | None = None
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class HandlerFailed:
    """A handler of a process beside the hub met an error that it does not know; told again while that is of late."""

    process: str
    handler: str
    count: int
    """Since the start of that process."""
    at: datetime
    error: str
    what: str = ""
    """What was set aside, in words."""


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """The node's process came or went."""

    at: datetime
    running: bool
    restarts: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FeedsChanged:
    """A feed was added, changed or removed."""


@dataclass(frozen=True, slots=True)
class SitesChanged:
    """A site, a credential or an allow list changed."""


@dataclass(frozen=True, slots=True)
class SubscriptionsChanged:
    """A subscription was added or removed."""


@dataclass(frozen=True, slots=True)
class ResendsChanged:
    """A resend was asked for, cancelled or finished."""


@dataclass(frozen=True, slots=True)
class CircuitTold:
    """The node says that an end of a circuit is reached no more, or again, or was removed at its moment."""

    circuit: int
    site: str | None
    state: Literal["up", "down", "removed"]
    at: datetime
    problem: CircuitProblem | None = None


@dataclass(frozen=True, slots=True)
class CircuitsChanged:
    """A circuit came to another state, was modified or measured anew, or a port changed."""

    circuit: int | None = None


@dataclass(frozen=True, slots=True)
class DeliveriesAsked:
    """The hub wants to know from its senders how products of a feed travel to sites."""

    ask: str
    """Names the question; answers carry it."""
    feed: str
    epoch: str
    sequences: tuple[int, ...]
    site: str | None = None
    """Of this site alone."""


@dataclass(frozen=True, slots=True)
class DeliveriesTold:
    """What a sender knows of one of these products."""

    ask: str
    sender: str
    sequence: int
    answer: str | None
    """The node's to `deliveries`, as JSON (docs/node-lines.md); None: it knows nothing, or too much for a record."""


@dataclass(frozen=True, slots=True)
class PartSeen:
    """A part in a process of its own is at work; it says so every few seconds."""

    part: str
    process: str
    """The process and its host, for people."""
    fault: str | None = None
    """Why the part does not do its work, as it found itself; None: it does."""


@dataclass(frozen=True, slots=True)
class PartAsked:
    """A process of the hub asks a part in another one."""

    ask: str
    """Names the question; answers carry it."""
    part: str
    question: str
    content: str
    """JSON; a long one comes in pieces."""
    piece: int = 0
    pieces: int = 1
    caller: Caller | None = None
    """Whose request this is about, for the audit; None: the hub's own."""


@dataclass(frozen=True, slots=True)
class PartAnswered:
    """What a part answers."""

    ask: str
    content: str = ""
    """JSON; a long one comes in pieces."""
    piece: int = 0
    pieces: int = 0
    """0: the part is still at work on it."""
    refused: bool = False
    """The content is a refusal."""


@dataclass(frozen=True, slots=True)
class EventsMissed:
    """Events of other processes did not come here; every subscriber gets this, whatever it asked for."""


Event = (
    SessionChanged
    | SiteViolated
    | LdmViolated
    | UpstreamChanged
    | LdmSourceChanged
    | LdmPeerChanged
    | LegChanged
    | TrafficSeen
    | BacklogSeen
    | PlanMade
    | PinChanged
    | BatchReady
    | BatchLoaded
    | FaultSeen
    | HandlerFailed
    | NodeChanged
    | FeedsChanged
    | SitesChanged
    | SubscriptionsChanged
    | ResendsChanged
    | CircuitTold
    | CircuitsChanged
    | DeliveriesAsked
    | DeliveriesTold
    | PartSeen
    | PartAsked
    | PartAnswered
    | EventsMissed
)
