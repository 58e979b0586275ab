"""Every transport for one feed under given offers: feasibility with reasons, predictions, and the best one.

A transport ruled out by the egress, the offers or the paths is discarded with the figure that rules it out. Of the
others the one with the lowest score is best: the cheapest that meets the objective, or the one that misses it least.
A price is in bits per second: egress of the hub, rates of circuits while they are up, bytes that a group brings to
sites that don't want them, a copy through each AMT tunnel, and for a group one copy in reserve for a site that stops
receiving it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from downburst.domain.plans import Transport
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import megabits, sites_of, some
from downburst_scheduler.models.costs import Service, costs_bps
from downburst_scheduler.models.demand.choosing import LEAST_RELEASED
from downburst_scheduler.models.demand.riding import OnDemand, on_demand
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.floors import Floor
from downburst_scheduler.models.grouping import MOST_GROUPS
from downburst_scheduler.models.groups import grouped_sites, partition_of, relayed_groups, riding_groups
from downburst_scheduler.models.offers import TUNNEL_SHARE, CircuitOffer
from downburst_scheduler.models.parts import (
    Asked,
    Part,
    asked_of,
    copies,
    left_beside,
    missed_by,
    on_circuits,
    tunnels_of,
)
from downburst_scheduler.models.population import Alike, count_of, members_of, names_of
from downburst_scheduler.models.rates import connection_bps
from downburst_scheduler.models.situation import Calibration, CircuitOffers, Costs, SiteFacts, Situation
from downburst_scheduler.models.sizing import Objective
from downburst_scheduler.models.transports import Outcome, dynamic_circuit, releases, static_circuit, together

__all__ = ["CircuitOffers", "Comparison", "Costs", "Evaluated", "Situation", "best_of", "compare", "evaluate"]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The evaluation of one transport."""

    transport: Transport
    feasible: bool
    reason: str
    parts: tuple[Part, ...] = ()
    """The sites, by the way of serving them."""
    outcome: Outcome | None = None
    rate_bps: float | None = None
    price_bps: float = 0.0
    """The cost, in bits per second of egress."""
    late_s: float | None = None
    """The objective's quantile of the latency, calibrated, as weighed by the choice: it includes the floor up to half
    the objective, so that time independent of the transport does not decide between transports."""
    score_bps: float = 0.0
    """The price, plus the cost of a missed objective."""
    calibration: Calibration = field(default_factory=Calibration)
    floor: Floor = field(default_factory=Floor)
    demand: tuple[DemandTerms, ...] = ()
    """The terms of the orders for each site on circuits on demand; the other sites get copies."""

    def quantile_ms(self, share: float) -> float:
        """A quantile of the predicted latency, including the machines' floor; zero without a prediction."""
        if self.outcome is None:
            return 0.0
        own_ms = self.outcome.latencies.quantile_s(share) * 1e3 * self.calibration.at(share)
        return own_ms + self.floor.at_ms(share)

    @property
    def groups(self) -> tuple[Part, ...]:
        """The parts that go by multicast."""
        return tuple(part for part in self.parts if part.transport is Transport.MULTICAST)

    @property
    def unicast_sites(self) -> tuple[str, ...]:
        """The sites that get a copy over the routed path."""
        return tuple(site for part in self.parts if part.transport is Transport.UNICAST for site in part.sites)

    @property
    def circuit_sites(self) -> tuple[tuple[str, int], ...]:
        """The sites served by a reserved circuit, each with its number."""
        riding = (part for part in self.parts if part.transport is Transport.STATIC_CIRCUIT)
        return tuple(one for part in riding for one in part.circuits)

    @property
    def ordered(self) -> dict[str, float]:
        """The mean number of circuits that are reserved at the same time, by offer."""
        offers, found = {one.site: one.offer for one in self.demand}, dict[str, float]()
        for part in self.parts:
            if part.transport is Transport.DYNAMIC_CIRCUIT and part.outcome is not None and part.rate_bps:
                offer = offers[part.sites[0]]
                found[offer] = found.get(offer, 0.0) + part.outcome.reserved_bps / part.rate_bps
        return found

    @property
    def routed_bps(self) -> float:
        """The egress of the hub's routed port."""
        return sum(part.outcome.egress_bps for part in self.parts if part.routed and part.outcome is not None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All transports and the best of them."""

    candidates: tuple[Evaluated, ...]
    best: Evaluated
    sentence: str


def compare(arrivals: Arrivals, situation: Situation) -> Comparison:
    """Evaluates every transport, and gives the best one and the reasons against the others."""
    found = evaluate(asked_of(arrivals, situation))
    best = best_of(found, situation.objective)
    return Comparison(found, best, _sentence(found, best, situation))


def evaluate(asked: Asked) -> tuple[Evaluated, ...]:
    """Evaluates every transport; without arrivals or sites there are no figures."""
    unicast = _unicast(asked)
    return (unicast, _multicast(asked, unicast), _static(asked), _dynamic(asked))


def best_of(
    found: Sequence[Evaluated], objective: Objective, *, standing: Transport | None = None, room: float = 0.0
) -> Evaluated:
    """The transport with the lowest score; others than the present one must meet the objective with room to spare.

    With equal scores the feed keeps its transport.
    """
    feasible = [one for one in found if one.feasible]
    if not feasible:
        return min((one for one in found if one.outcome or one.parts), key=lambda one: one.price_bps)
    if not any(one.late_s is not None and one.late_s <= objective.latency_s for one in feasible):
        return min(feasible, key=lambda one: (late_cost_bps(one, feasible, objective), one.transport != standing))

    def rank(one: Evaluated) -> tuple[bool, float, bool]:
        stands = standing in (None, one.transport)
        tight = one.late_s is not None and one.late_s > objective.latency_s * (1 if stands else 1 - room)
        return tight, one.score_bps, one.transport != standing

    return min(feasible, key=rank)


def late_cost_bps(one: Evaluated, found: Sequence[Evaluated], objective: Objective) -> float:
    """The cost where no transport meets the objective: a delay weighs no more than `costs_bps` says.

    A transport a little sooner than the others is not worth any price.
    """
    feasible = [Service(other.price_bps, other.late_s or 0.0) for other in found if other.feasible]
    return min(
        costs_bps([Service(one.price_bps, one.late_s or 0.0), *feasible], objective.latency_s)[0], one.score_bps
    )


def _unicast(asked: Asked) -> Evaluated:
    situation, count = asked.situation, count_of(asked.served)
    part = copies(asked, asked.served, egress_bps=situation.egress_bps)
    reason = f"a copy to each of {sites_of(count)}" if count != 1 else "one copy to the only site"
    if part.outcome is None:
        return Evaluated(Transport.UNICAST, feasible=True, reason=reason, parts=(part,))
    slow = [one for one in asked.served if connection_bps(one.facts) < asked.mean_bps * one.facts.share]
    refusal = _overload(part.outcome, situation) or (_too_slow(asked, slow) if slow else None)
    return _judged(asked, Transport.UNICAST, (part,), refusal, reason, price_bps=part.outcome.egress_bps)


def _multicast(asked: Asked, unicast: Evaluated) -> Evaluated:
    """Groups of the network or behind relays, or one on a circuit that is reserved to several of the sites."""
    network = _of_network(asked, unicast)
    ridden = [_on_circuit(asked, part, offer) for part, offer in riding_groups(asked)]
    ridden += _behind_relays(asked, unicast)
    # Infeasible ones are last, and the network's own reason is preferred.
    return min(
        [network, *ridden], key=lambda one: (not one.feasible, one is not network and not one.feasible, one.score_bps)
    )


def _on_circuit(asked: Asked, group: Part, offer: CircuitOffer) -> Evaluated:
    rest = [one for one in asked.served if one.names[0] not in group.sites]
    parts = (group, copies(asked, rest, egress_bps=asked.situation.egress_bps)) if rest else (group,)
    reason = f"one group of {len(group.sites)} sites on circuit {offer.circuit} at {megabits(offer.group_frames_bps)}"
    reason += f", {sites_of(count_of(rest))} by unicast" if rest else ""
    if group.outcome is None:
        return Evaluated(Transport.MULTICAST, feasible=True, reason=reason, parts=parts)
    routed, refusal = parts[-1].outcome if rest else None, None
    if (group.outcome.utilisation or 0) > 1:
        refusal = f"it carries {megabits(group.outcome.egress_bps)} on average and {reason}"
    elif routed is not None:
        refusal = _overload(routed, asked.situation)
    members = [one for one in asked.served if one.names[0] in group.sites]
    unwanted_bps = sum(asked.for_groups.mean_bps * (1 - one.facts.share) * one.facts.count for one in members)
    sent_bps = group.outcome.egress_bps / TUNNEL_SHARE * (1 if offer.replicated else count_of(members))
    copied_bps = routed.egress_bps if routed is not None else 0.0
    price_bps = sent_bps + copied_bps + asked.for_copies.mean_bps + unwanted_bps * asked.situation.costs.unwanted
    rate_bps = offer.group_frames_bps
    return _judged(asked, Transport.MULTICAST, parts, refusal, reason, price_bps=price_bps, rate_bps=rate_bps)


def _behind_relays(asked: Asked, unicast: Evaluated) -> list[Evaluated]:
    """A group behind each relay that may hand out the feed; the other sites get copies, or a group of the network."""
    insists = asked.situation.insists_on_multicast or not unicast.feasible
    groups = relayed_groups(asked, insists=insists)
    if not groups:
        return []
    found, inside = [_of_groups(asked, groups, None)], {site for part in groups for site in part.sites}
    if asked.situation.multicast and asked.situation.no_multicast is None:
        able = [one for one in asked.served if one.facts.no_multicast is None and one.names[0] not in inside]
        wanting = [one for one in able if insists or asked.why_alone(one) is None]
        if count_of(wanting) >= SMALLEST_GROUP:
            found.append(_of_groups(asked, (*groups, *grouped_sites(asked, wanting, limit_bps=None)), None))
    return found


def _of_network(asked: Asked, unicast: Evaluated) -> Evaluated:
    situation = asked.situation
    circuit = not situation.multicast
    if situation.no_multicast is not None:
        return _refused(Transport.MULTICAST, situation.no_multicast)
    if circuit and not situation.circuits.multipoint:
        return _refused(Transport.MULTICAST, "no network supports multicast and no multipoint circuit is offered")
    able = [one for one in asked.served if one.facts.no_multicast is None]
    if count_of(able) < SMALLEST_GROUP:
        return _refused(Transport.MULTICAST, _too_few(asked, able))
    limit_bps = asked.circuit_bps if circuit else None
    wanting = [one for one in able if asked.why_alone(one) is None]
    insists = situation.insists_on_multicast or not unicast.feasible
    tried = [wanting, able] if insists else [wanting]
    found = [_grouped(asked, some_, limit_bps) for some_ in tried if count_of(some_) >= SMALLEST_GROUP]
    if found:
        return next((one for one in found if one.feasible), found[-1])
    # A site that wants little would discard most of a group's bytes, so its joining benefits no one.
    why = some([reason for one in able if (reason := asked.why_alone(one)) is not None])
    gaining = f"only {count_of(wanting):g} of {sites_of(count_of(able))} would benefit from a group"
    return _refused(Transport.MULTICAST, f"{gaining} ({why})")


def _grouped(asked: Asked, members: Sequence[Alike], limit_bps: float | None) -> Evaluated:
    """One group at the pace of its slowest member; several if that misses the objective."""
    one = _of_groups(asked, grouped_sites(asked, members, limit_bps=limit_bps), limit_bps)
    objective = asked.situation.objective
    if one.outcome is None or limit_bps is not None or (one.feasible and (one.late_s or 0) <= objective.latency_s):
        return one
    several = grouped_sites(asked, members, limit_bps=None, most=MOST_GROUPS)
    if not several or names_of(members) == several[0].sites:
        return one
    other = _of_groups(asked, several, None)

    def rank(found: Evaluated) -> tuple[bool, float, float]:
        return not found.feasible, missed_by(found.parts, asked.situation), found.score_bps

    return min((one, other), key=rank)


def _of_groups(asked: Asked, groups: Sequence[Part], limit_bps: float | None) -> Evaluated:
    situation = asked.situation
    inside = {site for part in groups for site in part.sites}
    rest = [one for one in asked.served if not inside.issuperset(one.names)]
    left_bps = left_beside(situation, sum(part.rate_bps or 0.0 for part in groups))
    parts = (*groups, copies(asked, rest, egress_bps=left_bps)) if rest else tuple(groups)
    reason = partition_of(asked, groups, rest, circuit=limit_bps is not None)
    sent = [part.outcome for part in parts if part.outcome is not None]
    if not sent:
        return Evaluated(Transport.MULTICAST, feasible=True, reason=reason, parts=parts)
    whole = together(sent)
    narrow = next((part for part in groups if part.outcome and (part.outcome.utilisation or 0) > 1), None)
    refusal = None
    if narrow is not None and narrow.outcome is not None:
        pace = megabits(narrow.rate_bps or 0.0) + (f" behind relay {narrow.relay.relay}" if narrow.relay else "")
        refusal = f"it carries {megabits(narrow.outcome.egress_bps)} on average and can't go faster than {pace}"
    elif limit_bps is None:
        refusal = _overload(whole, situation)
    members = [one for one in asked.served if inside.issuperset(one.names)]
    unwanted_bps = sum(asked.for_groups.mean_bps * (1 - one.facts.share) * one.facts.count for one in members)
    circuit_bps = whole.reserved_bps * situation.costs.circuit
    copied_bps = sum(part.outcome.egress_bps for part in parts[len(groups) :] if part.outcome)
    paid_bps = circuit_bps + copied_bps if limit_bps is not None else whole.egress_bps
    reserve_bps = asked.for_copies.mean_bps
    price_bps = paid_bps + reserve_bps + unwanted_bps * situation.costs.unwanted
    price_bps += tunnels_of(groups).egress_bps * situation.costs.tunnel
    rate_bps = max(part.rate_bps or 0.0 for part in groups)
    return _judged(asked, Transport.MULTICAST, parts, refusal, reason, price_bps=price_bps, rate_bps=rate_bps)


def _static(asked: Asked) -> Evaluated:
    if any(one.facts.circuit is not None for one in asked.served):
        return _reserved(asked)
    bad = [site.no_circuit for site in members_of(asked.served) if site.no_circuit is not None]
    if bad:
        return _refused(Transport.STATIC_CIRCUIT, f"no circuit can be used ({some(bad, separator='; ')})")
    if not asked.situation.circuits.point_to_point or not asked.figures:
        return _refused(Transport.STATIC_CIRCUIT, asked.situation.circuits.none)
    rate_bps = asked.circuit_bps
    outcome = static_circuit(asked.arrivals, asked.paths, rate_bps=rate_bps)
    used, refusal = outcome.utilisation or 0.0, None
    if used < LEAST_UTILISATION:
        refusal = f"a circuit of {megabits(rate_bps)} would be {used:.1%} used, under {LEAST_UTILISATION:.0%}"
    reason = f"{sites_of(count_of(asked.served))} with {megabits(rate_bps)} each, {used:.0%} used"
    part = Part(Transport.STATIC_CIRCUIT, names_of(asked.served), outcome, rate_bps)
    price_bps = outcome.reserved_bps * asked.situation.costs.circuit
    return _judged(asked, Transport.STATIC_CIRCUIT, (part,), refusal, reason, price_bps=price_bps, rate_bps=rate_bps)


def _reserved(asked: Asked) -> Evaluated:
    """One circuit to each site that has one wide enough; the others get copies over the routed path."""
    having = [one for one in asked.served if one.facts.circuit is not None]
    served = [one for one in having if not asked.too_narrow(one)]
    if not served:
        return _refused(Transport.STATIC_CIRCUIT, _too_narrow(asked, having[0].facts))
    inside = set(names_of(served))
    rest = [one for one in asked.served if one.names[0] not in inside]
    parts = on_circuits(asked, served)
    if rest:
        parts = (*parts, copies(asked, rest, egress_bps=asked.situation.egress_bps))
    reason = _circuits(asked, served, rest)
    sent = [part.outcome for part in parts if part.outcome is not None]
    if not sent:
        return Evaluated(Transport.STATIC_CIRCUIT, feasible=True, reason=reason, parts=parts)
    whole = together(sent)
    routed = parts[-1].outcome if rest else None
    refusal = _overload(routed, asked.situation) if routed is not None else None
    # Existing circuits are paid for in any case, so using them costs the bytes carried.
    return _judged(asked, Transport.STATIC_CIRCUIT, parts, refusal, reason, price_bps=whole.egress_bps)


def _dynamic(asked: Asked) -> Evaluated:
    if any(one.facts.demand is not None for one in asked.served):
        return _on_demand(asked)
    offers = asked.situation.circuits
    if not offers.point_to_point or not asked.figures:
        return _refused(Transport.DYNAMIC_CIRCUIT, offers.not_on_demand or offers.none)
    freed = releases(asked.arrivals, setup_s=offers.setup_s, hold_s=offers.hold_s)
    rate_bps = asked.circuit_bps
    outcome = dynamic_circuit(
        asked.arrivals, asked.paths, rate_bps=rate_bps, setup_s=offers.setup_s, hold_s=offers.hold_s
    )
    refusal = offers.not_on_demand
    if freed.releases == 0:
        refusal = f"no silence is longer than {freed.hold_s:g} s, so a circuit would never be given back"
    elif freed.share_of_time < LEAST_RELEASED:
        refusal = f"silences over {freed.hold_s:g} s would give back only {freed.share_of_time:.1%} of the time"
    reason = f"{freed.releases} releases give back {freed.share_of_time:.0%} of the time"
    part = Part(Transport.DYNAMIC_CIRCUIT, names_of(asked.served), outcome, rate_bps)
    price_bps = outcome.reserved_bps * asked.situation.costs.circuit
    return _judged(asked, Transport.DYNAMIC_CIRCUIT, (part,), refusal, reason, price_bps=price_bps, rate_bps=rate_bps)


def _on_demand(asked: Asked) -> Evaluated:
    """A circuit for each train to each site with an offer; the others get copies over the routed path.

    While nothing can be ordered all sites get copies: a feed on circuits on demand stays so for a day's spent budget.
    """
    ordered = on_demand(asked)
    inside = set(names_of(ordered.riding))
    rest = [one for one in asked.served if one.names[0] not in inside]
    copied = copies(asked, rest, egress_bps=asked.situation.egress_bps) if rest else None
    parts = (*ordered.parts, copied) if copied is not None else ordered.parts
    reason = _ordered(ordered, rest)
    if not asked.figures:
        able = ordered.refusal is None
        found = Evaluated(Transport.DYNAMIC_CIRCUIT, feasible=able, reason=ordered.refusal or reason, parts=parts)
        return replace(found, demand=ordered.terms)
    routed = copied.outcome if copied is not None else None
    refusal = ordered.refusal or (_overload(routed, asked.situation) if routed is not None else None)
    price_bps = ordered.price_bps + (routed.egress_bps if routed is not None else 0.0)
    found = _judged(asked, Transport.DYNAMIC_CIRCUIT, parts, refusal, reason, price_bps=price_bps)
    return replace(found, demand=ordered.terms)


def _judged(  # noqa: PLR0913 (the facts about a candidate)
    asked: Asked,
    transport: Transport,
    parts: tuple[Part, ...],
    refusal: str | None,
    reason: str,
    *,
    price_bps: float,
    rate_bps: float | None = None,
) -> Evaluated:
    outcome = together([part.outcome for part in parts if part.outcome is not None])
    situation = asked.situation
    objective = situation.objective
    calibration = situation.calibration.get(transport, Calibration())
    own_s = outcome.latencies.quantile_s(objective.share) * calibration.at(objective.share)
    late_s = own_s + min(situation.floor.at_ms(objective.share) / 1e3, objective.latency_s * FLOOR_SHARE)
    missed = max(late_s / objective.latency_s - 1, 0.0)
    put_out = asked.put_out_sentence
    return Evaluated(
        transport=transport,
        feasible=refusal is None,
        reason=(refusal or reason) + (f"; {put_out}" if put_out else ""),
        parts=asked.with_put_out(parts),
        outcome=outcome,
        rate_bps=rate_bps,
        price_bps=price_bps,
        late_s=late_s,
        score_bps=price_bps + missed * situation.costs.miss_bps,
        calibration=calibration,
        floor=situation.floor,
    )


def _refused(transport: Transport, why: str) -> Evaluated:
    return Evaluated(transport, feasible=False, reason=why)


def _overload(sent: Outcome, situation: Situation) -> str | None:
    if sent.peak_egress_bps <= situation.egress_bps:
        return None
    need, have = megabits(sent.peak_egress_bps), megabits(situation.egress_bps)
    return f"it needs {need} in the busiest minute and the hub has {have}"


def _too_slow(asked: Asked, slow: Sequence[Alike]) -> str:
    worst = min(slow, key=lambda one: connection_bps(one.facts)).facts
    path = f"{worst.round_trip_s * 1e3:.0f} ms and {worst.loss:.2%} of loss leave {worst.congestion}"
    rate_bps = connection_bps(worst)
    if rate_bps == worst.forecast_bps:
        path = "measured rates of the path leave"
    who = sites_of(count_of(slow))
    return f"{who} can't take {megabits(asked.mean_bps)}: {path} {megabits(rate_bps)}"


def _too_few(asked: Asked, able: Sequence[Alike]) -> str:
    count = count_of(able)
    there = {0: "is none", 1: "is 1"}.get(round(count), f"are {count:g}")
    unable = [site.no_multicast for site in members_of(asked.served) if site.no_multicast is not None]
    why = f" ({some(unable)})" if unable else ""
    return f"a group needs at least {SMALLEST_GROUP} sites that can join and there {there}{why}"


def _circuits(asked: Asked, served: Sequence[Alike], rest: Sequence[Alike]) -> str:
    numbers = [site.circuit.circuit for site in members_of(served) if site.circuit is not None]
    count = f"{len(numbers)} circuits" if len(numbers) != 1 else f"circuit {numbers[0]}"
    if not rest:
        return count
    why = [site.no_circuit for site in members_of(rest) if site.no_circuit is not None]
    why += [_too_narrow(asked, one.facts) for one in rest if one.facts.circuit is not None]
    told = f" ({some(why, separator='; ')})" if why else ""
    return f"{count}, {sites_of(count_of(rest))} by unicast{told}"


def _ordered(ordered: OnDemand, rest: Sequence[Alike]) -> str:
    said = some(list(ordered.said), separator="; ") or f"circuits ordered for {sites_of(count_of(ordered.riding))}"
    said += f" at a price of {megabits(ordered.price_bps)}" if ordered.said else ""
    if not rest:
        return said
    why = f" ({some(list(ordered.without), separator='; ')})" if ordered.without else ""
    return f"{said}, {sites_of(count_of(rest))} by unicast{why}"


def _too_narrow(asked: Asked, site: SiteFacts) -> str:
    rate = megabits(site.circuit.payload_bps if site.circuit else 0.0)
    mean = megabits(asked.mean_bps * site.share)
    return f"{site.name} takes {mean} on average and its circuit has {rate} left for products"


def _sentence(found: Sequence[Evaluated], best: Evaluated, situation: Situation) -> str:
    objective = situation.objective
    late_s = best.quantile_ms(objective.share) / 1e3
    kept = "within" if late_s <= objective.latency_s else "over"
    figures = f"p{100 * objective.share:g} {late_s:.3g} s, {kept} the objective of {objective.latency_s:g} s"
    chosen = best.reason if best.feasible else f"nothing is feasible and it needs least ({best.reason})"
    others = [f"{one.transport}: {against(one, best, objective)}" for one in found if one is not best]
    return f"{best.transport}: {chosen}, {figures}; not {'; not '.join(others)}"


def against(one: Evaluated, best: Evaluated, objective: Objective) -> str:
    """The reason why a candidate is not the best one."""
    if not one.feasible:
        return one.reason
    if one.late_s is not None and one.late_s > objective.latency_s:
        return f"p{100 * objective.share:g} would be {one.quantile_ms(objective.share) / 1e3:.3g} s"
    return f"it costs {megabits(one.price_bps)} against {megabits(best.price_bps)}"


SMALLEST_GROUP = 2
LEAST_UTILISATION = 0.2
"""A circuit that is four fifths empty withholds capacity from others."""
FLOOR_SHARE = 0.5
"""The maximum weight of the machines' floor, as a share of the objective. With all of it, a floor above the
objective would make every transport miss it, and microseconds would decide."""
