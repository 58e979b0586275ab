"""Plans: what is decided for each feed, why, and what it cost."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from downburst.domain.plans import OtherConditions, TrafficSpan, Transport
from downburst_contract.base import Answer, Number, Shape
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


class WhatIfNew(Shape):
    """Other conditions of a feed to try; those left out are as today. Nothing is changed by trying."""

    sites: Annotated[int, Field(ge=1, le=500)] | None = None
    """Fan-out: fewer of the feed's sites, or more like them."""
    egress_bps: Annotated[float, Field(ge=1e6, le=400e9)] | None = None
    """Egress of the hub that is free for this feed, as Ethernet-frame bits per second."""
    objective_ms: Annotated[float, Field(ge=10, le=600_000)] | None = None
    setup_s: Annotated[float, Field(ge=0.1, le=3_600)] | None = None
    """Set-up time of circuits on demand."""
    traffic: TrafficSpan = TrafficSpan.NOW
    """now: the arrivals that the plan in force rests on; busiest: the busiest such window of the last day."""
    flips: bool = True
    """Whether to search the values at which the choice flips, which takes seconds for a busy feed."""

    def to_model(self) -> OtherConditions:
        """The conditions as the scheduler knows them."""
        return OtherConditions(self.sites, self.egress_bps, self.objective_ms, self.setup_s, self.traffic)


class Conditions(Answer):
    """Conditions under which a transport is chosen."""

    sites: int
    egress_bps: Number
    """Egress of the hub that is free for this feed, as Ethernet-frame bits per second."""
    objective_ms: Number
    setup_s: Number | None
    """The longest set-up time of circuits on demand; null: no offer of them reaches a site."""


class Judgement(Answer):
    """A choice, its reason, and the figures of all transports, the chosen one first."""

    transport: Transport
    sentence: str
    candidates: list[Candidate]


class ConditionFlip(Answer):
    """The nearest value of a condition, below or above the tried one, at which the choice is another."""

    condition: str
    """A member of the conditions."""
    below: bool
    at: Number
    transport: Transport


class WhatIf(Answer):
    """The planner's answer to other conditions of a feed."""

    feed: str
    today: Conditions
    tried: Conditions
    traffic: TrafficSpan
    products: int
    """In the window of arrivals that was played."""
    span_s: Number
    """The length of that window."""
    mean_bps: Number
    begun_s_ago: Number
    """The time since the begin of that window."""
    now: Judgement
    """The decision at this moment, which a change may still wait for."""
    then: Judgement
    """The decision under the tried conditions, once they have lasted."""
    flips: list[ConditionFlip]
    complete: bool
    """False: flips were not searched, or not to the end."""
    notes: list[str]
