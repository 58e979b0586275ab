"""The planner's view of circuits on demand: offers to sites, and the sites whose ordered circuit carries a feed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from downburst.domain.circuits import CircuitState, Port
from downburst.domain.ordering import Budget, DemandOrder, Offer, OrderStep, Setups
from downburst.domain.plans import Leg, Plan, Transport
from downburst.domain.relays import Core, SiteWay
from downburst.ledger import Transaction
from downburst_scheduler.demand.budgets import midnight, refusal, rest
from downburst_scheduler.demand.cores import carries_core, cores_joined
from downburst_scheduler.demand.records import OpenOrders, Terms
from downburst_scheduler.demand.steps import MARGIN_S, late_s
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.offers import DemandOffer

REQUESTS = "on-demand-"
"""Request ids of ordered circuits begin with it (`DemandOrder.request_id`)."""


@dataclass(frozen=True, slots=True)
class Rider:
    """A site whose ordered circuit carries a feed."""

    order: int
    circuit: int


@dataclass(frozen=True, slots=True)
class OnDemand:
    """Offers and orders at one moment."""

    offers: Mapping[str, DemandOffer] = field(default_factory=dict)
    """By site, the cheapest that can be ordered; if all are spent, the cheapest of these."""
    riders: Mapping[tuple[str, str], Rider] = field(default_factory=dict)
    """By feed and site: its circuit is active and not to be given back."""
    opened: OpenOrders = field(default_factory=OpenOrders)
    cores: Mapping[Core, DemandOffer] = field(default_factory=dict)
    """The cheapest that can be ordered between two relays."""
    behind: Mapping[str, Core] = field(default_factory=dict)
    """By site directly behind a relay of these, its core."""

    def core_of(self, site: str, way: SiteWay | None) -> tuple[Core | None, DemandOffer | None]:
        """The core of a site's way that can be ordered, or one that the way could have, with its offer."""
        of_way = next((core for core in (way.cores if way is not None else ()) if core in self.cores), None)
        core = of_way or self.behind.get(site)
        return core, self.cores.get(core) if core is not None else None

    @classmethod
    def of(cls, tx: Transaction, *, now: datetime, price: float) -> "OnDemand":
        """The ledger's contents; `price` is that of offers without one."""
        terms, opened = Terms.of(tx), OpenOrders.of(tx)
        offers = list(terms.offers.values())
        limited = [offer.name for offer in offers if offer.budget != Budget()]
        today = tx.planning.orders.since(midnight(now), offers=limited) if limited else []
        offered = [(offer, _offered(offer, terms.setups.get(offer.name), today, now, price)) for offer in offers]
        offered.sort(key=lambda pair: (pair[1].spent is not None, pair[1].price, pair[0].name))
        cores = _by_core(offered, terms.ports)
        relays = tx.fleet.relays.all() if cores else []
        return cls(
            offers=_by_site(offered, terms.ports),
            riders=_riders(opened),
            opened=opened,
            cores=cores,
            behind={
                site: core for core in cores for relay in relays if relay.name == core.far for site in relay.sites
            },
        )

    def said(self, feed: str, site: str) -> str:
        """The order of a feed to a site and its circuit, in words."""
        order = self.opened.orders.get((feed, site))
        if order is None:
            return f"{site} has no order"
        circuit = self.opened.circuits.get(order.number)
        return f"order {order.number}" + (
            f" and circuit {circuit.number} ({circuit.usable_state})" if circuit else ""
        )


def legs_on_demand(
    feed: str, sites: Sequence[str], known: OnDemand, *, unicast_leg: int, circuit_leg: int | None
) -> tuple[Leg, ...]:
    """The legs of a feed on circuits on demand: the sites with an active one ride on it, the others get copies."""
    riders = {site: known.riders[feed, site].circuit for site in sites if (feed, site) in known.riders}
    if circuit_leg is None:
        riders = {}
    rest = tuple(sorted(site for site in sites if site not in riders))
    legs = [Leg(unicast_leg, Transport.UNICAST, rest)] if rest or not riders else []
    if riders and circuit_leg is not None:
        circuits = tuple(sorted(riders.items()))
        names = tuple(site for site, _ in circuits)
        legs.append(Leg(circuit_leg, Transport.DYNAMIC_CIRCUIT, names, circuits=circuits))
    return tuple(legs)


def moved(plan: Plan, known: OnDemand, *, unicast_leg: int, circuit_leg: int | None, at: datetime) -> Plan | None:
    """The plan with the riders of this moment, and the orders that moved; None if the riders are the same."""
    before = riding(plan)
    sites = sorted({site for leg in plan.legs if leg.transport in _COPIED for site in leg.sites})
    others = tuple(leg for leg in plan.legs if leg.transport not in _COPIED)
    legs = (*others, *legs_on_demand(plan.feed, sites, known, unicast_leg=unicast_leg, circuit_leg=circuit_leg))
    after = riding(replace(plan, legs=legs))
    if before == after:
        return None
    joined = [f"{site} by {known.said(plan.feed, site)}" for site in after if after[site] != before.get(site)]
    left = [f"{site} from circuit {before[site]}" for site in before if site not in after]
    said = [f"onto circuits: {', '.join(joined)}"] if joined else []
    said += [f"back to the routed path: {', '.join(left)}"] if left else []
    reason = f"{Transport.DYNAMIC_CIRCUIT}: {'; '.join(said)}"
    return replace(plan, version=0, legs=legs, reason=reason, made_at=at)


def riding(plan: Plan | None) -> dict[str, int]:
    """The sites of a plan that ride on ordered circuits, each with its circuit."""
    legs = [leg for leg in plan.legs if leg.transport is Transport.DYNAMIC_CIRCUIT] if plan else []
    return {site: circuit for leg in legs for site, circuit in leg.circuits}


def is_other(wanted: Sequence[DemandTerms], standing: Sequence[DemandTerms]) -> bool:
    """True if terms differ by more than measurements do: these make no further plan."""
    before = {one.site: one for one in standing}
    return {one.site for one in wanted} != before.keys() or any(_differ(one, before[one.site]) for one in wanted)


def _differ(one: DemandTerms, other: DemandTerms) -> bool:
    same = (one.offer, one.rate_bps, one.ahead) == (other.offer, other.rate_bps, other.ahead)
    return not same or not HOLD_KEPT_FROM <= one.hold_s / other.hold_s <= 1 / HOLD_KEPT_FROM


def _riders(opened: OpenOrders) -> dict[tuple[str, str], Rider]:
    circuits = opened.circuits
    up = {
        pair: circuits[one.number]
        for pair, one in opened.orders.items()
        if one.step is OrderStep.UP and one.number in circuits
    }
    return {
        pair: Rider(opened.orders[pair].number, circuit.number)
        for pair, circuit in up.items()
        if circuit.usable_state is CircuitState.ACTIVE and not carries_core(circuit)
    }


def _offered(
    offer: Offer, setups: Setups | None, today: Sequence[DemandOrder], now: datetime, price: float
) -> DemandOffer:
    setup_s = offer.expected_setup_s(setups)
    until = now + timedelta(seconds=late_s(setup_s) + offer.least_hold_s + MARGIN_S)
    # The rest of open windows is promised, not used: most of it is given back.
    own = [replace(one, times=replace(one.times, until=now)) for one in today if one.offer == offer.name]
    spent = refusal(offer.budget, own, begin=now, until=until)
    return DemandOffer(
        offer=offer.name,
        rates_bps=offer.rates_bps,
        price=price if offer.price is None else offer.price,
        setup_s=setup_s,
        least_hold_s=offer.least_hold_s,
        orders=0 if setups is None else setups.count,
        spent=None if spent is None else f"offer {offer.name}: {spent}",
        rest=rest(offer.budget, own, now=now),
    )


def _by_site(offers: Sequence[tuple[Offer, DemandOffer]], ports: Mapping[str, Port]) -> dict[str, DemandOffer]:
    found: dict[str, DemandOffer] = {}
    for offer, one in offers:
        near = ports.get(offer.hub_port)
        for name in offer.ports if near is not None and near.site is None else ():
            port = ports.get(name)
            if port is not None and port.site is not None:
                found.setdefault(port.site, one)
    return found


def _by_core(offers: Sequence[tuple[Offer, DemandOffer]], ports: Mapping[str, Port]) -> dict[Core, DemandOffer]:
    found: dict[Core, DemandOffer] = {}
    for offer, one in offers:
        for core in cores_joined(offer, ports):
            found.setdefault(core, one)
    return found


_COPIED = (Transport.UNICAST, Transport.DYNAMIC_CIRCUIT)
HOLD_KEPT_FROM = 0.75
"""Hold times that differ by less than a quarter are those of one choice."""
