"""Plans: what is decided for each feed, why, and what it cost."""

from datetime import datetime

from downburst.domain.plans import Transport
from downburst_contract.base import Answer, Number
from downburst_contract.feeds import Pin


class LegCircuit(Answer):
    """The circuit that a leg uses to a site."""

    site: str
    circuit: int


class Leg(Answer):
    """One delivery over one path to a set of sites, with what it sent.

    `group`, `port`, `rate_bps` and `relay` are left out of a leg of an earlier plan, of which only the counts are
    kept.
    """

    leg: int
    transport: Transport
    group: str | None = None
    port: int | None = None
    rate_bps: int | None = None
    relay: str | None = None
    """The relay that fans out the one copy to these sites; null: the hub's own network does."""
    sites: int
    site_names: list[str]
    circuits: list[LegCircuit]
    products: int
    bytes: int
    egress_bytes: int
    repair_bytes: int
    control_bytes: int
    unicast_equivalent_bytes: int


class Group(Answer):
    """A multicast leg of the plan, with its rates, and its latencies as predicted and as measured."""

    leg: int
    rate_bps: int | None
    """Its pace in the plan, as Ethernet-frame bits per second."""
    site_names: list[str]
    predicted_p50_ms: Number | None
    predicted_p99_ms: Number | None
    measured_p50_ms: Number | None
    """Of its sites, under this plan, in the last hour; null: not measured yet."""
    measured_p99_ms: Number | None
    paced_bps: Number | None
    """The rate at which it was last sent: losses may have lowered it. Null: not reported yet."""
    line_bps: Number | None
    """The pace by the losses of its sites; null: something else sets it."""


class Candidate(Answer):
    """One transport as the scheduler judged it."""

    transport: Transport
    feasible: bool
    reason: str
    egress_bps: Number | None
    """Mean egress of the hub for this feed."""
    peak_egress_bps: Number | None
    predicted_p50_ms: Number | None
    predicted_p95_ms: Number | None
    predicted_p99_ms: Number | None
    predicted_max_ms: Number | None
    reserved_bps: Number | None
    """Rates of circuits over the time that they would be up."""
    price_bps: Number | None
    """What egress, circuits and unwanted bytes cost, as bits per second of egress."""
    score_bps: Number | None
    """The price, and what it costs that the objective is missed; the lowest is best."""


class Floor(Answer):
    """The machines' own time, which is part of each predicted latency."""

    p50_ms: Number | None
    p95_ms: Number | None
    p99_ms: Number | None
    hub_p50_ms: Number | None
    slowest_site: str | None
    slowest_site_p50_ms: Number | None
    deliveries: Number


Figure = bool | int | float | str | None


class Plan(Answer):
    """The scheduler's versioned decision for a feed, with the figures and the sentence that explain it."""

    feed: str
    version: int
    transport: Transport
    reason: str
    made_at: datetime
    pinned: bool
    legs: list[Leg]
    groups: list[Group]
    """The slowest first."""
    candidates: list[Candidate]
    figures: dict[str, Figure]
    floor: Floor | None
    """Null: not measured yet."""
    flip: Figure
    would_be: Figure
    products: int


class CurrentPlan(Plan):
    """The current plan of a feed, and the order that it follows, if there is one."""

    pin: Pin | None


class Totals(Answer):
    """Totals of all legs of all feeds."""

    egress_bytes: int
    unicast_equivalent_bytes: int
    product_bytes: int
    repair_bytes: int
    control_bytes: int
