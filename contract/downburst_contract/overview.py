"""The overview and the states of the hub: what is wrong, what flows, how and why, who has it, how late."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from downburst.domain.alarms import AlarmKind, Severity
from downburst.domain.feeds import FeedClass
from downburst.domain.plans import Transport
from downburst_contract.alarms import Silence
from downburst_contract.base import Answer, Number, OpenAnswer
from downburst_contract.circuits import Circuit
from downburst_contract.latency import FeedLatency
from downburst_contract.now.incidents import Incident, StatusSentence
from downburst_contract.plans import Candidate, Figure, Floor, Group, Leg
from downburst_contract.sites import OwnClock, PathFacts, SiteCondition


class Alive(Answer):
    """The process answers."""

    status: str


class Health(Answer):
    """Every probe passes."""

    status: str
    ledger: str
    probes: dict[str, str]
    """By name `ok`, or what is wrong."""


class NodeState(Answer):
    """Whether the node runs, and how often it was started again."""

    running: bool
    restarts: int


class NodeFeed(OpenAnswer):
    """What the node's log of a feed holds."""

    feed: str
    epoch: str
    head: int
    first: int
    products: int
    bytes: int


class NodeSession(OpenAnswer):
    """What the node says of a site's session."""

    site: str
    feeds: list[dict[str, Any]]


class Status(Answer):
    """The hub and its node, with the node's feeds and sessions."""

    name: str
    version: str
    started_at: datetime
    uptime_s: float
    data_dir: str
    sites_address: list[str]
    ca_sha256: str
    probes: dict[str, str]
    node: NodeState
    sites_connected: int
    feeds: list[NodeFeed]
    sessions: list[NodeSession]


class HubState(Answer):
    """The hub itself."""

    name: str
    version: str
    started_at: datetime
    uptime_s: float
    node: NodeState
    probes: dict[str, str]


class Fault(Answer):
    """Something that is wrong, and what to do about it."""

    at: datetime
    severity: Severity
    kind: AlarmKind | None
    """Of the alarm that is raised for it if it lasts; null for what raises none."""
    alarm: int | None
    """Its number, if it goes on."""
    sentence: str
    feed: str | None
    site: str | None
    next: str | None
    """What to do."""
    silence: Silence | None


class Throughput(Answer):
    """What comes in and goes out."""

    in_bps: Number
    out_bps: Number
    unicast_equivalent_bps: Number
    egress_bytes: int
    unicast_equivalent_bytes: int


class PlanSeen(Answer):
    """The current plan of a feed."""

    version: int
    transport: Transport
    reason: str
    clause: Annotated[str, Field(max_length=60)]
    """The deciding figure of the reason, for a line of a list."""
    pinned: bool
    legs: list[Leg]
    groups: list[Group]
    """The slowest first."""
    candidates: list[Candidate]
    figures: dict[str, Figure]
    floor: Floor | None
    flip: str | None
    would_be: str | None
    since: datetime


class FeedSeen(Answer):
    """A feed: what comes in, its plan, its latency."""

    feed: str
    feed_class: Annotated[FeedClass, Field(alias="class")]
    products: int
    bytes: int
    rate_bps: Number
    rate_history: list[Number]
    """Product bits per second of each of the last seconds, oldest first."""
    mean_bps: Number
    peak_1s_bps: Number
    peak_60s_bps: Number
    silent_share: Number | None
    fan_out: int
    head: int
    plan: PlanSeen | None
    latency: FeedLatency
    objective_ms: float


class Window(Answer):
    """A maintenance window of a whole site."""

    number: int
    until: datetime
    reason: str
    by: str


class ActionFailed(Answer):
    """What a site's own rules could not do with a product."""

    rule: str
    """The file and the line."""
    exit: int | None
    """Of the program, or minus the signal that ended it; null if none ended."""
    last_error: str
    product: str
    sequence: int
    epoch: str | None
    count: int
    """For how many products of the feed rules failed; this one counts."""
    others: list[int]


class SiteFeed(Answer):
    """How far a site is with a feed. What there is nothing to say of is left out."""

    feed: str
    settled_to: int
    pending: int
    transport: Transport
    leg: int
    trouble: str = ""
    """Why the site stores nothing of the feed at the moment, in its words."""
    late: int = 0
    """Products that came behind a later one, against the order that was asked for."""
    action_failed: ActionFailed = Field(default=None)  # type: ignore[assignment]


class SiteSeen(SiteCondition):
    """A site: its state, its backlog, its clock, the way to it, and how far it is with each feed."""

    site: str
    organisation: str
    maintenance: Window | None
    stand_by: bool
    """Connected, and served by another hub."""
    clock_offset_ms: float | None
    clock_bound_ms: float | None
    round_trip_ms: float | None
    own_clock: OwnClock | None
    path: PathFacts
    stored: int
    last_receipt: datetime | None
    feeds: list[SiteFeed]


class UpstreamSeen(Answer):
    """A hub that this hub is a site of."""

    upstream: str
    address: str
    feeds: list[str]
    """None: every feed that both hubs have."""
    connected: bool
    since: datetime | None
    hub: str | None
    """What it calls itself; null until it was first heard."""
    reason: str | None


class LdmUpstreamSeen(Answer):
    """How it stands with an LDM that is asked for products."""

    upstream: str
    connected: bool
    mode: str
    since: datetime | None
    reason: str | None


class LdmSourceSeen(Answer):
    """LDMs that are asked for the same products."""

    source: str
    feeds: str
    upstreams: list[LdmUpstreamSeen]


class Overview(Answer):
    """Everything the page shows, which the event `overview` carries too. Null: not measured."""

    hub: HubState
    now: datetime
    faults: list[Fault]
    status: StatusSentence
    incidents: list[Incident]
    """The same faults for people, at most 100: with title, extent and actions, the longest of equals first."""
    throughput: Throughput
    feeds: list[FeedSeen]
    sites: list[SiteSeen]
    circuits: list[Circuit]
    upstreams: list[UpstreamSeen]
    ldm_sources: list[LdmSourceSeen]
