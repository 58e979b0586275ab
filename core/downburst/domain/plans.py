"""Plans: the transport of each feed, and the reason. Rates of legs are Ethernet-frame bits per second."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from downburst.domain.relays.relay import FanOut


class Transport(StrEnum):
    """How the bytes of a leg travel."""

    UNICAST = "unicast"
    STATIC_CIRCUIT = "static-circuit"
    DYNAMIC_CIRCUIT = "dynamic-circuit"
    MULTICAST = "multicast"


@dataclass(frozen=True, slots=True)
class Leg:
    """One delivery over one path to a set of sites."""

    leg: int
    transport: Transport
    sites: tuple[str, ...]
    group: str | None = None
    port: int | None = None
    rate_bps: int | None = None
    circuits: tuple[tuple[str, int], ...] = ()
    """For a static-circuit leg the circuit to each site; for a group on a circuit the same one for all."""
    relay: str | None = None
    """The relay that fans out the one copy of a multicast leg to these sites; None: the hub's own network does."""
    fan_out: FanOut = FanOut.GROUP
    """The way in which that relay does it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The scheduler's judgement of one transport."""

    transport: Transport
    feasible: bool
    reason: str
    egress_bps: float | None = None
    """Mean egress of the hub for this feed."""
    peak_egress_bps: float | None = None
    predicted_p50_ms: float | None = None
    predicted_p95_ms: float | None = None
    predicted_p99_ms: float | None = None
    predicted_max_ms: float | None = None
    reserved_bps: float | None = None
    """Rates of circuits, weighted by the share of time that they would be up."""
    price_bps: float | None = None
    """The cost of egress, circuits and unwanted bytes, as bits per second of egress."""
    score_bps: float | None = None
    """The price, plus the cost of a missed objective; the lowest is best."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The scheduler's versioned decision for a feed, with the figures and the sentence that explain it."""

    feed: str
    version: int
    legs: tuple[Leg, ...]
    reason: str
    made_at: datetime
    candidates: tuple[Candidate, ...] = ()
    figures: Mapping[str, float | str | bool | None] = field(default_factory=dict)
    pinned: bool = False

    @property
    def transport(self) -> Transport:
        """The transport of the leg with most sites; unicast without sites.

        Sites wait on the routed path for circuits on demand, and are in such a plan nevertheless.
        """
        if self.figures.get(ON_DEMAND):
            return Transport.DYNAMIC_CIRCUIT
        widest = max(self.legs, key=lambda leg: len(leg.sites), default=None)
        return Transport.UNICAST if widest is None else widest.transport


@dataclass(frozen=True, slots=True)
class Pin:
    """An operator's order to use one transport for a feed."""

    feed: str
    transport: Transport
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LegCounters:
    """Traffic of a leg under one version of a feed's plan."""

    feed: str
    version: int
    leg: int
    transport: Transport
    sites: int = 0
    products: int = 0
    product_bytes: int = 0
    egress_bytes: int = 0
    """UDP and TCP payload with TLS, repair and the leg's share of control bytes."""
    repair_bytes: int = 0
    control_bytes: int = 0
    unicast_equivalent_bytes: int = 0
    """The minimum cost of the same products as separate copies for each site."""


@dataclass(frozen=True, slots=True)
class EgressQuarter:
    """The traffic of all legs in a quarter hour of the clock."""

    minute: int
    """Its first minute since 1970."""
    egress_bytes: int
    unicast_equivalent_bytes: int


@dataclass(frozen=True, slots=True)
class LegTrial:
    """The packets that a leg sent at one rate in a second while it used the whole rate, and its sites' losses."""

    rate_bps: int
    packets: int
    lost: tuple[tuple[str, int], ...] = ()
    """Sites with the packets that each lost, the greatest losses first; other sites on the leg lost none."""


class TrafficSpan(StrEnum):
    """The arrivals that other conditions are tried on."""

    NOW = "now"
    """Those of the planner's window, which the plan in force rests on."""
    BUSIEST = "busiest"
    """The window with the most bytes within the last day."""


@dataclass(frozen=True, slots=True)
class OtherConditions:
    """Conditions of a feed to try; None: as today."""

    sites: int | None = None
    egress_bps: float | None = None
    objective_ms: float | None = None
    setup_s: float | None = None
    traffic: TrafficSpan = TrafficSpan.NOW


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions under which a transport is chosen."""

    sites: int
    egress_bps: float
    """Egress of the hub that is free for this feed, in frames."""
    objective_ms: float
    setup_s: float | None
    """The longest set-up time of circuits on demand; None: no offer of them reaches a site."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A choice with the figures of all transports, the chosen one first."""

    transport: Transport
    sentence: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class ConditionFlip:
    """The nearest value of a condition, below or above the tried one, with another choice."""

    condition: str
    """A field of the conditions."""
    below: bool
    at: float
    transport: Transport


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The planner's answer to other conditions of a feed."""

    feed: str
    today: Conditions
    tried: Conditions
    traffic: TrafficSpan
    products: int
    span_s: float
    """The length of the window of arrivals."""
    mean_bps: float
    begun_s_ago: float
    """The time since the begin of that window."""
    now: Judgement
    """The planner's decision at this moment, held back or not."""
    then: Judgement
    """Its decision under the tried conditions, once they have lasted."""
    flips: tuple[ConditionFlip, ...]
    complete: bool
    """False if flips were not searched, or not to the end."""
    notes: tuple[str, ...]


def leg_figure(leg: int, name: str) -> str:
    """The name of a plan's figure about one of its legs."""
    return f"{OF_LEGS}{leg}_{name}"


OF_LEGS = "leg_"
"""Names of figures about single legs begin so."""
LEG_FIGURES = (
    "predicted_p50_ms", "predicted_p99_ms", "measured_p50_ms", "measured_p99_ms", "paced_bps", "line_bps"
)  # fmt: skip
"""Of a group: latencies, the rate at which it was last sent, and the limit by its sites' losses."""
NOT_CONSIDERED = "not_considered_"
"""The beginning of figures that name a transport that is not there; their value is the reason."""
ON_DEMAND = "demand"
"""The figure with the terms of circuits on demand; a plan that has it has chosen them."""
