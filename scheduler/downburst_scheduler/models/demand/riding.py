"""Sites on circuits ordered for each train: terms, their part of a plan, its price, and the reasons against it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from downburst.domain.plans import Transport
from downburst_scheduler.figures.wording import megabits, sites_of
from downburst_scheduler.models.delays import Delays, Latencies
from downburst_scheduler.models.demand.choosing import Choice, choice_for, circuit_bps, routed_bps
from downburst_scheduler.models.demand.playing import Reservations, recurring, sojourns_s
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.offers import DemandOffer
from downburst_scheduler.models.parts import Asked, Part
from downburst_scheduler.models.population import Alike, count_of, names_of
from downburst_scheduler.models.rates import whole
from downburst_scheduler.models.transports import Outcome, peak_minute_bps, stepped


@dataclass(frozen=True, slots=True)
class OnDemand:
    """The sites that ride ordered circuits, by offer."""

    riding: tuple[Alike, ...] = ()
    parts: tuple[Part, ...] = ()
    terms: tuple[DemandTerms, ...] = ()
    """Of each site."""
    price_bps: float = 0.0
    """Reserved bit/s x share of the time reserved x the offer's price: bit/s equivalents of egress."""
    refusal: str | None = None
    """The reason not to order for any of them."""
    without: tuple[str, ...] = ()
    """The reasons why sites with an offer stay on the routed path."""
    said: tuple[str, ...] = ()
    """Figures of the orders under each offer."""


def on_demand(asked: Asked) -> OnDemand:
    """The sites whose offers are worthwhile; if none is, all that could ride, with the reason not to."""
    groups = _by_offer(asked)
    spent = tuple(dict.fromkeys(offer.spent for offer, _ in groups if offer.spent is not None))
    able = [(offer, some) for offer, some in groups if offer.spent is None]
    if not able:
        return OnDemand(refusal=spent[0], without=spent)
    choices = [choice_for(asked, [one.facts for one in some], offer) for offer, some in able]
    refused = tuple(dict.fromkeys(one.refusal for one in choices if one.refusal is not None))
    good = [(*pair, one) for pair, one in zip(able, choices, strict=True) if one.refusal is None]
    every = [(*pair, one) for pair, one in zip(able, choices, strict=True)]
    groups_ridden = [ridden(asked, offer, some, choice) for offer, some, choice in good or every]
    return OnDemand(
        riding=tuple(one for found in groups_ridden for one in found.riding),
        parts=tuple(part for found in groups_ridden for part in found.parts),
        terms=tuple(terms for found in groups_ridden for terms in found.terms),
        price_bps=sum(found.price_bps for found in groups_ridden),
        refusal=None if good else refused[0],
        without=(*spent, *refused),
        said=tuple(one for found in groups_ridden for one in found.said),
    )


def ridden(asked: Asked, offer: DemandOffer, some: Sequence[Alike], choice: Choice) -> OnDemand:
    """Sites on circuits under one choice of terms."""
    terms = tuple(replace(choice.terms, site=name) for name in names_of(some))
    part = Part(Transport.DYNAMIC_CIRCUIT, names_of(some), rate_bps=choice.terms.rate_bps)
    if not asked.figures:
        return OnDemand(tuple(some), (part,), terms)
    held = recurring(asked.for_circuits, choice.terms)
    outcome = _outcome(asked, some, offer, choice.terms, held)
    # Copies over the core of a way leave the hub by its routed port as before.
    routed_bps = outcome.egress_bps if offer.core is not None else 0.0
    price_bps = outcome.reserved_bps * offer.price + routed_bps
    said = _said(asked, some, choice.terms, held) + (f" between {offer.core.said}" if offer.core is not None else "")
    return OnDemand(tuple(some), (replace(part, outcome=outcome),), terms, price_bps, said=(said,))


def _by_offer(asked: Asked) -> list[tuple[DemandOffer, list[Alike]]]:
    """Sites of one offer with the same share of the feed get one choice: plays are dear, and paths matter little."""
    found: dict[tuple[DemandOffer, float], list[Alike]] = {}
    for one in asked.served:
        if one.facts.demand is not None:
            found.setdefault((one.facts.demand, round(one.facts.share, 1)), []).append(one)
    return [(offer, some) for (offer, _), some in found.items()]


def _outcome(
    asked: Asked, some: Sequence[Alike], offer: DemandOffer, terms: DemandTerms, held: Reservations
) -> Outcome:
    arrivals, kept_share = asked.for_circuits, held.reserved_share(asked.arrivals.span_s)
    rate_bps, count = circuit_bps(asked, offer, terms.rate_bps), count_of(some)
    delays: dict[tuple[float, float], Delays] = {}
    latencies = []
    for one in some:
        key = (stepped(routed_bps(asked, one.facts)), one.facts.share)
        if key not in delays:
            spent_s = sojourns_s(arrivals, held, routed_bps=key[0], circuit_bps=rate_bps, share=key[1])
            delays[key] = Delays.of_values(spent_s, np.zeros(len(spent_s)), np.ones(len(spent_s)))
        latencies.append(delays[key].at_site(whole(one.facts).round_trip_s))
    copies = sum(one.facts.share * one.facts.count for one in some)
    reserved_bps = terms.rate_bps * count * kept_share
    return Outcome(
        latencies=Latencies.of_sites(latencies, [one.facts.count for one in some]),
        egress_bps=arrivals.mean_bps * copies,
        peak_egress_bps=peak_minute_bps(arrivals) * copies,
        reserved_bps=reserved_bps,
        utilisation=arrivals.mean_bps * copies / reserved_bps if reserved_bps else None,
        setups=len(held.ordered_s) * round(count),
    )


def _said(asked: Asked, some: Sequence[Alike], terms: DemandTerms, held: Reservations) -> str:
    kept = f"{held.reserved_share(asked.arrivals.span_s):.0%} of the time"
    ahead = " ahead of trains" if terms.ahead else ""
    ordered = f"{megabits(terms.rate_bps)} ordered{ahead} for {sites_of(count_of(some))} and reserved {kept}"
    return f"{ordered} (offer {terms.offer}, set-up {terms.setup_s:.3g} s, hold {terms.hold_s:.3g} s)"
