"""The budgets of circuits in a feed's choice: the gain of orders, and offers whose rest is kept for greater gains."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from downburst.domain.plans import Transport
from downburst_scheduler.models.candidates import Evaluated, Situation
from downburst_scheduler.models.costs import Service, costs_bps
from downburst_scheduler.models.demand.pacing import Saving, affordable_share, saving
from downburst_scheduler.models.offers import Rest
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.models.sizing import Objective


def savings_of(
    found: Sequence[Evaluated],
    situation: Situation,
    before: Mapping[str, Saving],
    *,
    now_s: float,
    day_s: float,
) -> dict[str, Saving]:
    """The pace of each budget after a look with these options; without orders to weigh it stays as it is."""
    ordered = next(one for one in found if one.transport is Transport.DYNAMIC_CIRCUIT)
    circuits, rests = ordered.ordered if ordered.feasible else {}, _rests(situation)
    together = sum(circuits.values())
    gain_bps = gain_of_orders_bps(found, situation.objective) / together if together > 0 else 0.0
    known = {offer: before[offer] for offer in before.keys() & rests.keys()}
    return known | {
        offer: saving(
            before.get(offer),
            gain=gain_bps,
            share=affordable_share(rests[offer], circuits[offer]),
            now_s=now_s,
            day_s=day_s,
        )
        for offer in circuits.keys() & rests.keys()
    }


def gain_of_orders_bps(found: Sequence[Evaluated], objective: Objective) -> float:
    """The cost that circuits on demand save beside copies over the routed path; negative if they cost more."""
    by_transport = {one.transport: one for one in found}
    services = [
        Service(one.price_bps, one.late_s or 0.0, is_possible=one.feasible)
        for one in (by_transport[Transport.UNICAST], by_transport[Transport.DYNAMIC_CIRCUIT])
    ]
    copied_bps, ordered_bps = costs_bps(services, objective.latency_s)
    return copied_bps - ordered_bps


def keeping(situation: Situation, offers: Collection[str]) -> Situation:
    """The situation while the rest of these offers' budgets is kept."""
    return replace(situation, sites=tuple(_kept(site, offers) for site in situation.sites))


def _kept(site: PathFacts, offers: Collection[str]) -> PathFacts:
    if not isinstance(site, SiteFacts) or site.demand is None or site.demand.offer not in offers:
        return site
    demand, rest = site.demand, site.demand.rest
    if rest is None or demand.spent is not None:
        return site
    left = f"its last {rest.circuit_s / 3_600:.3g} circuit-hours for the next {rest.day_s / 3_600:.3g} h"
    why = f"offer {demand.offer}: {left} are kept for trains with a greater gain"
    return replace(site, demand=replace(demand, spent=why))


def _rests(situation: Situation) -> dict[str, Rest]:
    demands = (site.demand for site in situation.sites if isinstance(site, SiteFacts))
    return {one.offer: one.rest for one in demands if one is not None and one.rest is not None}
