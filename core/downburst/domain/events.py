"""Events of a hub, as typed values that travel over the bus."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from downburst.domain.access import Caller
from downburst.domain.backlog import CatchUpChanged, FeedBacklog
from downburst.domain.bridges.signs import BridgesChanged
from downburst.domain.circuits import CircuitUse
from downburst.domain.circuits.signs import CircuitEvent
from downburst.domain.latency import SiteClock
from downburst.domain.ordering.signs import SilenceEvent
from downburst.domain.plans import LegTrial, Plan, Transport
from downburst.domain.probes.signs import ProbeEvent
from downburst.domain.readings import HostReading
from downburst.domain.relays.report import RelayReport
from downburst.domain.senders import SenderSeen
from downburst.domain.tcp.path import TcpPath
from downburst.domain.tcp.profiles import AppliedProfile
from downburst.domain.tcp.tracing import TracerAsked, TracerTold
from downburst.domain.tcp.transfers import Transfer


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """A site's control connection opened, closed or was refused."""

    site: str
    """Empty: a stranger without proof of being a site."""
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
    """A site sent an impossible value: its session ended, or the value is ignored."""

    site: str
    at: datetime
    sentence: str


@dataclass(frozen=True, slots=True)
class LdmViolated:
    """An LDM peer sent impossible data: its connection ended."""

    peer: str
    at: datetime
    sentence: str
    source: str | None = None
    """The source of which it is an upstream; None: it connected to this hub."""
    site: str | None = None
    """The site of the LDM, if known."""


@dataclass(frozen=True, slots=True)
class UpstreamChanged:
    """The connection to a hub of which this hub is a site opened, closed or was refused."""

    upstream: str
    state: Literal["connected", "closed", "refused"]
    at: datetime
    hub: str | None = None
    """The other hub's own name."""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LdmSourceChanged:
    """The connection to a source LDM opened, closed or was refused."""

    source: str
    upstream: str
    state: Literal["connected", "closed", "refused"]
    at: datetime
    mode: str = ""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LdmPeerChanged:
    """A connection of an LDM to this hub opened, closed or was refused."""

    peer: str
    state: Literal["connected", "closed", "refused"]
    at: datetime
    what: str = ""
    """`feedme`, `notifyme` or `hiya`; empty without a request."""
    site: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LegChanged:
    """A site joined or left a leg, or never received the group of one, or was too slow for it."""

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
    """The epoch of the head; empty: not reported."""


@dataclass(frozen=True, slots=True)
class LegTraffic:
    """Traffic of one leg since the last traffic event."""

    leg: int
    feed: str
    egress_bytes: int
    repair_bytes: int
    products: int
    product_bytes: int
    sites: int
    backlog_bytes: int
    transport: Transport = Transport.UNICAST
    rate_bps: int | None = None
    trials: tuple[LegTrial, ...] = ()

    @property
    def unicast_equivalent_bytes(self) -> int:
        """The bytes of these products as separate copies for each site; a unicast leg already counts copies."""
        copies = self.sites if self.transport is Transport.MULTICAST else 1
        return self.product_bytes * copies


@dataclass(frozen=True, slots=True)
class ActionFailed:
    """A failure of the site's own rules for a product."""

    rule: str
    """The file and the line."""
    exit: int | None
    """Exit status of the program, or minus the signal that ended it; None if no program ended."""
    last_error: str
    product: str
    sequence: int
    epoch: str | None = None
    """The epoch of the sequences; None: the site's log does not name one."""
    count: int = 1
    """The products of the feed with failed rules that are unattended at the site, including this one."""
    others: tuple[int, ...] = ()
    """The sequences of the newest of the others."""


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """A site's files of products that left its log; they were second names of the log's own."""

    bytes: int
    free_bytes: int
    """The free space of their disk."""


@dataclass(frozen=True, slots=True)
class SiteProgress:
    """A site's progress with one feed."""

    feed: str
    settled_to: int
    pending: int
    transport: Transport
    leg: int
    trouble: str | None = None
    """The reason why the site stores nothing of the feed at the moment, in its words."""
    late: int = 0
    """Products that local software saw after a later one, against the requested order, since the site started."""
    action_failed: ActionFailed | None = None
    """The newest unattended failure of the site's own rules."""
    heartbeat_us: int | None = None
    """The creation time of the newest heartbeat that came out at the site's end."""
    heartbeat_waits_us: int | None = None
    """The creation time of the oldest heartbeat that did not come out."""
    heartbeat_waited_us: int | None = None
    """The node's wait for that one at the time of the report, on its own clock."""
    linked: LinkedFiles | None = None
    """Files whose products left the site's log; None: there are none."""
    reading: HostReading | None = None


@dataclass(frozen=True, slots=True)
class Streams:
    """A session's data connections."""

    open: int
    planned: int
    reason: str
    """The reason for the number: a sentence of the node."""


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
    tcp_profile: AppliedProfile | None = None
    clock: SiteClock | None = None
    transfers: tuple[Transfer, ...] = ()
    """A few of those since the last traffic event."""


@dataclass(frozen=True, slots=True)
class TrafficSeen:
    """A second of the node's counters."""

    from_us: int
    to_us: int
    feeds: tuple[FeedTraffic, ...]
    legs: tuple[LegTraffic, ...]
    sessions: tuple[SessionTraffic, ...]
    """Sessions with changes, and a few others; a site that is not listed is unchanged."""
    control_bytes: int
    circuits: tuple[CircuitUse, ...] = ()
    gone: frozenset[str] = frozenset()
    """Sites with sessions that ended before."""
    sender: str = ""
    """The sender that counted; empty: the hub's own node."""

    @property
    def seconds(self) -> float:
        """The real time that the counts cover, never zero."""
        return max(self.to_us - self.from_us, 1) / 1e6

    @property
    def egress_bps(self) -> float:
        """Egress to sites, in bits per second."""
        return (sum(leg.egress_bytes for leg in self.legs) + self.control_bytes) * 8 / self.seconds


@dataclass(frozen=True, slots=True)
class SiteBacklog:
    """A site's backlog of each of its feeds."""

    site: str
    feeds: tuple[FeedBacklog, ...]


@dataclass(frozen=True, slots=True)
class BacklogSeen:
    """Backlogs of sites, as counted by the node; a site that is not listed is unchanged."""

    sites: tuple[SiteBacklog, ...]
    sender: str = ""
    """The sender that counted the feeds that it serves; empty: the hub's own node."""


@dataclass(frozen=True, slots=True)
class RelaySeen:
    """A relay's report."""

    at: datetime
    report: RelayReport


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
    """The node wrote a batch file, ready for loading."""

    batch: str
    path: Path


@dataclass(frozen=True, slots=True)
class BatchLoaded:
    """A batch is in the ledger."""

    batch: str


@dataclass(frozen=True, slots=True)
class FaultSeen:
    """A fault for the operator."""

    at: datetime
    sentence: str
    feed: str | None = None
    site: str | None = None
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class HandlerFailed:
    """A handler of a process beside the hub met an unexpected error; repeated while that is recent."""

    process: str
    handler: str
    count: int
    """Since the start of that process."""
    at: datetime
    error: str
    what: str = ""
    """A description of the item that was set aside."""


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """The node's process started or ended."""

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
    """A resend was requested, cancelled or finished."""


@dataclass(frozen=True, slots=True)
class TcpProfilesChanged:
    """TCP profiles changed, or a trial of one took a step."""


@dataclass(frozen=True, slots=True)
class DeliveriesAsked:
    """The hub queries its senders for the way of products of a feed to sites."""

    ask: str
    """The id of the query; answers carry it."""
    feed: str
    epoch: str
    sequences: tuple[int, ...]
    site: str | None = None
    """Only for this site."""


@dataclass(frozen=True, slots=True)
class DeliveriesTold:
    """A sender's knowledge of one of these products."""

    ask: str
    sender: str
    sequence: int
    answer: str | None
    """The node's answer to `deliveries`, as JSON (docs/node-lines.md); None: nothing known, or too much to send."""


@dataclass(frozen=True, slots=True)
class PartSeen:
    """The sign of life of a part in a process of its own, sent every few seconds."""

    part: str
    process: str
    """The process and its host, for users."""
    fault: str | None = None
    """The reason why the part does not work, by its own check; None: it works."""


@dataclass(frozen=True, slots=True)
class PartAsked:
    """A process of the hub sends a request to a part in another one."""

    ask: str
    """The id of the request; answers carry it."""
    part: str
    question: str
    content: str
    """JSON; a long one is sent in pieces."""
    piece: int = 0
    pieces: int = 1
    caller: Caller | None = None
    """The caller on whose behalf the request is made, for the audit; None: the hub itself."""


@dataclass(frozen=True, slots=True)
class PartAnswered:
    """An answer of a part."""

    ask: str
    content: str = ""
    """JSON; a long one is sent in pieces."""
    piece: int = 0
    pieces: int = 0
    """0: the part is still working on it."""
    refused: bool = False
    """The content is a refusal."""


@dataclass(frozen=True, slots=True)
class EventsMissed:
    """Events of other processes were lost; every subscriber gets this, irrespective of its event types."""


Event = (
    SessionChanged
    | SiteViolated
    | LdmViolated
    | UpstreamChanged
    | LdmSourceChanged
    | LdmPeerChanged
    | LegChanged
    | CatchUpChanged
    | TrafficSeen
    | BacklogSeen
    | RelaySeen
    | PlanMade
    | PinChanged
    | BatchReady
    | BatchLoaded
    | FaultSeen
    | HandlerFailed
    | NodeChanged
    | SenderSeen
    | FeedsChanged
    | SitesChanged
    | SubscriptionsChanged
    | ResendsChanged
    | TcpProfilesChanged
    | ProbeEvent
    | SilenceEvent
    | CircuitEvent
    | BridgesChanged
    | DeliveriesAsked
    | DeliveriesTold
    | TracerAsked
    | TracerTold
    | PartSeen
    | PartAsked
    | PartAnswered
    | EventsMissed
)
