"""Parts of a plan: some of a feed's sites, served in one way, with the predicted outcome."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from downburst.domain.plans import Transport
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import megabits, sites_of
from downburst_scheduler.models import wire
from downburst_scheduler.models.grouping import ROOM, GroupingRules, Receiver, why_alone
from downburst_scheduler.models.offers import CircuitOffer, RelayOffer
from downburst_scheduler.models.population import Alike, alike, count_of, names_of
from downburst_scheduler.models.rates import PathFacts, segments_of
from downburst_scheduler.models.situation import Situation
from downburst_scheduler.models.sizing import Objective, least_rate
from downburst_scheduler.models.transports import (
    Outcome,
    fair_rates_bps,
    peak_minute_bps,
    relayed,
    static_circuit,
    together,
    unicast,
)


@dataclass(frozen=True, slots=True)
class Part:
    """Sites that are served in one way."""

    transport: Transport
    sites: tuple[str, ...]
    outcome: Outcome | None = None
    rate_bps: float | None = None
    limited: bool = False
    """True if a member's line sets the pace of a group."""
    swept: str = ""
    """The sweep of a member's path that sets the pace of a group, in words."""
    lossy: bool = False
    """True if losses of a member set the pace of a group."""
    circuits: tuple[tuple[str, int], ...] = ()
    """For reserved circuits, the number of each site's own; for a group on one, that of all its sites."""
    relay: RelayOffer | None = None
    """The relay that gets one copy of a group and hands it out in its own network."""
    tunnels: int = 0
    """The number of a group's members to which an AMT relay sends a copy."""

    @property
    def routed(self) -> bool:
        """True if it leaves by the hub's routed port."""
        return self.transport in (Transport.UNICAST, Transport.MULTICAST) and not self.circuits


@dataclass(frozen=True)
class Asked:
    """The input of a comparison, with values shared by several candidates."""

    arrivals: Arrivals
    situation: Situation
    served: tuple[Alike, ...]
    """The sites that the choice is about."""
    put_out: tuple[Alike, ...] = ()
    """Sites with lines too slow for the feed: they get copies, fall behind with any transport, and don't count."""

    @cached_property
    def figures(self) -> bool:
        """True if there is anything to play."""
        return bool(self.served) and len(self.arrivals.at_s) > 0

    @cached_property
    def mean_bps(self) -> float:
        """Mean rate of the products."""
        return self.arrivals.mean_bps

    @cached_property
    def paths(self) -> list[PathFacts]:
        """Paths of the sites that the choice is about."""
        return [one.facts for one in self.served]

    @cached_property
    def fair_level_bps(self) -> float:
        """The routed rate of a site that takes the whole feed and is limited by nothing but the hub's egress."""
        rates_bps = fair_rates_bps(self.paths, self.situation.egress_bps)
        return max(
            (bps / max(path.share, LEAST_WEIGHT) for bps, path in zip(rates_bps, self.paths, strict=True)),
            default=0.0,
        )

    @cached_property
    def circuit_bps(self) -> float:
        """The rate to request for a circuit: the greatest of busiest minute, mean with room, and objective's need."""
        objective = self.situation.objective
        away_s = max((site.round_trip_s for site in self.paths), default=0.0) / 2
        least = least_rate(self.arrivals, Objective(objective.share, objective.latency_s * SURELY), away_s=away_s)
        return max(peak_minute_bps(self.arrivals), self.mean_bps * ROOM, least.rate_bps if least else 0.0)

    @cached_property
    def for_copies(self) -> Arrivals:
        """The arrivals as they are sent by unicast."""
        return self._framed(wire.UNICAST)

    @cached_property
    def for_groups(self) -> Arrivals:
        """The arrivals as they are sent by multicast."""
        return self._framed(wire.GROUP)

    @cached_property
    def for_circuits(self) -> Arrivals:
        """The arrivals as they are sent inside a circuit's tunnel."""
        return self._framed(wire.TUNNEL)

    @cached_property
    def put_out_sentence(self) -> str:
        """The sites that are put out, and the reason."""
        if not self.put_out:
            return ""
        slowest = min(self.put_out, key=lambda one: one.facts.access_bps or 0.0)
        takes = megabits(slowest.facts.access_bps or 0.0)
        who = slowest.names[0] if count_of(self.put_out) == 1 else f"{sites_of(count_of(self.put_out))}"
        falls = "falls" if count_of(self.put_out) == 1 else "fall"
        return f"{who} can take {takes} and {falls} behind by any transport"

    def with_put_out(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The parts, plus copies for the sites that are put out."""
        return (*parts, Part(Transport.UNICAST, names_of(self.put_out))) if self.put_out else parts

    def why_alone(self, one: Alike) -> str | None:
        """The reason why these sites are better served by copies; members leave later than outsiders would join."""
        cost = self.situation.costs.unwanted * (MEMBERS_STAY if one.facts.in_group else 1.0)
        rate_bps = min(one.facts.access_bps or self.situation.multicast_rate_bps, self.situation.multicast_rate_bps)
        rules = GroupingRules(
            mean_bps=0.0 if one.facts.access_bps is None else self.mean_bps, unwanted_byte_cost=cost
        )
        return why_alone(Receiver(one.names[0], rate_bps, one.facts.share), rules)

    def too_narrow(self, one: Alike) -> bool:
        """True if the circuit of these sites carries less than their average need."""
        circuit = one.facts.circuit
        return circuit is not None and self.mean_bps * one.facts.share >= circuit.payload_bps

    def carried_bps(self, offer: CircuitOffer) -> float:
        """The rate at which a circuit accepts the arrivals as they are played."""
        return offer.copy_bps if self.situation.headers else offer.payload_bps

    def _framed(self, overhead: wire.Overhead) -> Arrivals:
        if not self.situation.headers or not self.figures:
            return self.arrivals
        return wire.framed(self.arrivals, overhead)


def asked_of(arrivals: Arrivals, situation: Situation, population: tuple[Alike, ...] | None = None) -> Asked:
    """The input, with sites put out that no transport can serve."""
    every = alike(situation.sites) if population is None else population
    mean_bps = arrivals.mean_bps
    hopeless = tuple(
        one for one in every if one.facts.access_bps and one.facts.access_bps < mean_bps * one.facts.share
    )
    if len(hopeless) == len(every):
        return Asked(arrivals, situation, every)
    return Asked(arrivals, situation, tuple(one for one in every if one not in hopeless), hopeless)


def copies(asked: Asked, some: Sequence[Alike], *, egress_bps: float) -> Part:
    """A copy to each of these sites over the routed path."""
    part = Part(Transport.UNICAST, names_of(some))
    if not asked.figures or not some:
        return part
    paths = [one.facts for one in some if one.facts.edge is None]
    relayed_paths = [segments_of(one.facts) for one in some if one.facts.edge is not None]
    sent, left_bps = [], egress_bps
    if relayed_paths:
        # Few sites are on relays: their part of the egress is the fair one, and a rest of it is left unused.
        weights = [sum(path.share * path.count for path in of) for of in (paths, [one[0] for one in relayed_paths])]
        relayed_bps = egress_bps * weights[1] / max(sum(weights), LEAST_WEIGHT)
        left_bps = egress_bps - relayed_bps
        sent.append(relayed(asked.for_copies, relayed_paths, egress_bps=relayed_bps))
    if paths:
        sent.append(unicast(asked.for_copies, paths, egress_bps=left_bps, order=asked.situation.order))
    return replace(part, outcome=together(sent))


@dataclass(frozen=True, slots=True)
class Tunnels:
    """The copies of groups that AMT relays send, one through the tunnel of each site without multicast."""

    count: int
    egress_bps: float
    """Of the relays together."""

    @property
    def said(self) -> str:
        """Them as a clause; empty without one."""
        if not self.count:
            return ""
        copies = "one copy" if self.count == 1 else f"{self.count} copies"
        rate = f" of {megabits(self.egress_bps)} together" if self.egress_bps else ""
        return f", {copies}{rate} through AMT tunnels to {sites_of(self.count)}"


def tunnels_of(parts: Sequence[Part]) -> Tunnels:
    """The tunnels of all parts together."""
    egress_bps = sum(part.outcome.egress_bps * part.tunnels for part in parts if part.outcome is not None)
    return Tunnels(sum(part.tunnels for part in parts), egress_bps)


def on_circuits(asked: Asked, some: Sequence[Alike]) -> tuple[Part, ...]:
    """Each of these sites on the circuit that is reserved to it."""
    circuits = tuple((site.name, site.circuit.circuit) for one in some for site in one.members if site.circuit)
    part = Part(Transport.STATIC_CIRCUIT, names_of(some), circuits=circuits)
    if not asked.figures:
        return (part,)
    by_rate: dict[float, list[PathFacts]] = {}
    for one in some:
        if one.facts.circuit is not None:
            by_rate.setdefault(asked.carried_bps(one.facts.circuit), []).append(one.facts)
    played = [static_circuit(asked.for_circuits, paths, rate_bps=rate_bps) for rate_bps, paths in by_rate.items()]
    return (replace(part, outcome=together(played), rate_bps=max(by_rate)),)


def left_beside(situation: Situation, paced_bps: float) -> float:
    """The egress that groups of this pace leave for copies."""
    return max(situation.egress_bps - paced_bps, (1 - GROUP_SHARE_OF_EGRESS) * situation.egress_bps)


def missed_by(parts: Sequence[Part], situation: Situation) -> float:
    """The mean over the sites of how far their part misses the objective, as a share of it.

    The quantile of all sites together is that of the slowest ones, and would hide any gain of the others.
    """
    objective = situation.objective
    factors = {transport: one.at(objective.share) for transport, one in situation.calibration.items()}
    floor_s = min(situation.floor.at_ms(objective.share) / 1e3, objective.latency_s / 2)
    late = [
        (len(part.sites), part.outcome.latencies.quantile_s(objective.share) * factors.get(part.transport, 1.0))
        for part in parts
        if part.outcome is not None
    ]
    missed = sum(count * max((late_s + floor_s) / objective.latency_s - 1, 0.0) for count, late_s in late)
    return round(missed / max(sum(count for count, _ in late), 1), 3)


LEAST_WEIGHT = 1e-12
SURELY = 0.98
"""Predictions are accurate to one per cent, and a circuit that just misses is of no use."""
GROUP_SHARE_OF_EGRESS = 0.9
"""A group paced at more than this share of the free egress would starve everything else."""
MEMBERS_STAY = 0.5
"""A member stays until its discarded bytes cost twice as much as would keep it from joining."""
