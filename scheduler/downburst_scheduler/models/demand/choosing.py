"""The terms of orders for sites of one offer: the rate step, the hold, and whether to order ahead of trains.

The feed's own recent arrivals are played under each of them, with holds from their own silences. The cheapest terms
that meet the objective with room are chosen. The price of orders is their rate x the share of the time reserved x the
offer's price, in bit/s equivalents of egress.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from downburst.domain.plans import Transport
from downburst_scheduler.figures.histograms import Floats
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import megabits
from downburst_scheduler.models import wire
from downburst_scheduler.models.demand.habit import Habit
from downburst_scheduler.models.demand.playing import Reservations, recurring, sojourns_s
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.offers import PAYLOAD_SHARE, DemandOffer
from downburst_scheduler.models.parts import SURELY, Asked
from downburst_scheduler.models.rates import RELAYED_SHARE, PathFacts, connection_bps, whole
from downburst_scheduler.models.situation import Calibration, SiteFacts
from downburst_scheduler.models.sizing import Objective, least_rate


@dataclass(frozen=True, slots=True)
class Choice:
    """Terms, and the reason not to order under them; None if orders are worthwhile."""

    terms: DemandTerms
    refusal: str | None = None


def terms_for(asked: Asked, site: SiteFacts, offer: DemandOffer) -> DemandTerms | str:
    """The terms that cost least and meet the objective, or else come nearest to it; or the reason not to order."""
    if offer.spent is not None:
        return offer.spent
    found = choice_for(asked, [site], offer)
    return found.terms if found.refusal is None else found.refusal


def choice_for(asked: Asked, sites: Sequence[SiteFacts], offer: DemandOffer) -> Choice:
    """One choice for several sites with this offer, by the slowest and the longest of their paths.

    Without arrivals, trains are expected to need the widest step.
    """
    least = DemandTerms(sites[0].name, offer.offer, offer.rates_bps[-1], offer.setup_s, least_hold_s(offer))
    if not asked.figures:
        return Choice(least)
    refusal = _never_released(asked.arrivals, offer, least) or _above_every_step(asked, sites, offer)
    if refusal is not None:
        return Choice(least, refusal)
    tried = _Tried(asked, offer, _worst(asked, sites))
    roomy, just = (_cheapest(tried, least, allowed_s) for allowed_s in _limits_s(asked))
    if roomy is not None and just is not None and tried.price_bps(roomy) > tried.price_bps(just) * WORTH_OF_ROOM:
        return Choice(just)
    return Choice(roomy or just or min(tried.known, key=tried.late_s, default=least))


def least_hold_s(offer: DemandOffer) -> float:
    """The shortest hold: a silence shorter than the set-up frees no circuit in time for the next train."""
    return max(offer.setup_s, offer.least_hold_s, LEAST_HOLD_S)


def circuit_bps(asked: Asked, offer: DemandOffer, rate_bps: float) -> float:
    """The rate at which a circuit of this rate in frames takes the arrivals as they are played.

    One that carries the core of a way is one segment of it: the slowest counts, less 15 % as over any relays.
    """
    own_bps = rate_bps if asked.situation.headers else rate_bps * PAYLOAD_SHARE
    if offer.core is None:
        return own_bps
    return min(own_bps, _in_frames(asked, offer.beside_bps)) * RELAYED_SHARE


def routed_bps(asked: Asked, path: PathFacts) -> float:
    """The rate of the routed path for arrivals in the frames of a circuit, beside copies to all other sites."""
    return _in_frames(asked, min(connection_bps(path), asked.fair_level_bps * path.share))


def _in_frames(asked: Asked, own_bps: float) -> float:
    """The rate for arrivals that are played in the frames of a circuit."""
    return own_bps * (1 + wire.TUNNEL.share) / (1 + wire.UNICAST.share) if asked.situation.headers else own_bps


class _Tried:
    """Terms played for the worst path of some sites."""

    def __init__(self, asked: Asked, offer: DemandOffer, path: PathFacts) -> None:
        self._asked, self._path = asked, path
        self.offer, self.routed_bps = offer, routed_bps(asked, path)
        self._held: dict[tuple[float, bool], Reservations] = {}
        self.known: dict[DemandTerms, float] = {}

    @property
    def arrivals(self) -> Arrivals:
        return self._asked.for_circuits

    def held(self, terms: DemandTerms) -> Reservations:
        key = (terms.hold_s, terms.ahead)
        if key not in self._held:
            self._held[key] = recurring(self.arrivals, terms)
        return self._held[key]

    def released(self, terms: DemandTerms) -> float:
        """The share of the time without a circuit."""
        return 1 - self.held(terms).reserved_share(self.arrivals.span_s)

    def price_bps(self, terms: DemandTerms) -> float:
        return terms.rate_bps * (1 - self.released(terms)) * self.offer.price

    def late_s(self, terms: DemandTerms) -> float:
        """The objective's quantile of the latency."""
        if terms not in self.known:
            sojourn_s = sojourns_s(
                self.arrivals,
                self.held(terms),
                routed_bps=self.routed_bps,
                circuit_bps=circuit_bps(self._asked, self.offer, terms.rate_bps),
                share=self._path.share,
            )
            self.known[terms] = _at_share(sojourn_s, self._asked.situation.objective.share) + self._away_s
        return self.known[terms]

    @property
    def _away_s(self) -> float:
        return whole(self._path).round_trip_s / 2


def _limits_s(asked: Asked) -> Iterator[float]:
    """The latency allowed, first with room: trains to come differ, and a change needs a clear gain."""
    situation = asked.situation
    factor = situation.calibration.get(Transport.DYNAMIC_CIRCUIT, Calibration()).at(situation.objective.share)
    for room in (ROOMY, SURELY):
        yield situation.objective.latency_s * room / max(factor, LEAST_FACTOR)


def _cheapest(tried: _Tried, least: DemandTerms, allowed_s: float) -> DemandTerms | None:
    """The cheapest terms that keep the objective and release enough; the least step is found by bisection."""

    def keeps(terms: DemandTerms) -> bool:
        return tried.late_s(terms) <= allowed_s

    best, best_bps = None, math.inf
    enough = max(tried.released(least) * KEPT_OF_LEAST, LEAST_RELEASED)
    for terms in _holds(tried, least):
        if tried.released(terms) < enough:
            continue
        if tried.price_bps(replace(terms, rate_bps=tried.offer.rates_bps[0])) >= best_bps:
            continue
        found = _least_step(terms, tried.offer.rates_bps, keeps)
        if found is not None and (price_bps := tried.price_bps(found)) < best_bps:
            best, best_bps = found, price_bps
    return best


def _holds(tried: _Tried, least: DemandTerms) -> Iterator[DemandTerms]:
    """The least hold, and holds just above some of the longer silences; ahead of trains where they have a habit."""
    gaps_s = np.diff(tried.arrivals.at_s)
    longer_s = np.unique(gaps_s[gaps_s > least.hold_s])
    chosen_s = longer_s[np.linspace(0, len(longer_s) - 1, min(HOLDS_TRIED, len(longer_s))).astype(np.int64)]
    for hold_s in [least.hold_s, *(chosen_s * ABOVE).tolist()]:
        terms = replace(least, hold_s=hold_s)
        yield terms
        held = tried.held(terms)
        if Habit.of(held.ordered_s[-HABIT_STARTS:].tolist()).next_after(float(held.ordered_s[-1])) is not None:
            yield replace(terms, ahead=True)


def _least_step(
    terms: DemandTerms, rates_bps: Sequence[int], keeps: Callable[[DemandTerms], bool]
) -> DemandTerms | None:
    if not keeps(replace(terms, rate_bps=rates_bps[-1])):
        return None
    low, high = 0, len(rates_bps) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(replace(terms, rate_bps=rates_bps[middle])) else (middle + 1, high)
    return replace(terms, rate_bps=rates_bps[low])


def _never_released(arrivals: Arrivals, offer: DemandOffer, least: DemandTerms) -> str | None:
    """The silence before the first and after the last product count: trains may be rarer than the window is long."""
    edges_s = [float(arrivals.at_s[0]), arrivals.span_s - float(arrivals.at_s[-1])]
    longest_s = max([*edges_s, float(np.diff(arrivals.at_s).max(initial=0.0))])
    if longest_s <= least.hold_s:
        needed = f"one longer than {least.hold_s:g} s would be needed"
        return f"{_binding(offer)} and no silence of this feed is longer than {longest_s:.3g} s; {needed}"
    released = 1 - recurring(arrivals, least).reserved_share(arrivals.span_s)
    if released >= LEAST_RELEASED:
        return None
    given_back = f"silences over {least.hold_s:g} s would give back only {released:.1%} of the time"
    return f"{_binding(offer)} and {given_back}; at least {LEAST_RELEASED:.0%} would be needed"


def _binding(offer: DemandOffer) -> str:
    """The reason for the least hold."""
    if offer.setup_s >= max(offer.least_hold_s, LEAST_HOLD_S):
        return f"a circuit takes {offer.setup_s:.3g} s to set up"
    return f"a circuit is held for at least {least_hold_s(offer):g} s"


def _above_every_step(asked: Asked, sites: Sequence[SiteFacts], offer: DemandOffer) -> str | None:
    """The reason if even a circuit that always stands would fall behind; the rate needed is that of one in time."""
    objective, arrivals = asked.situation.objective, asked.for_circuits
    share, widest_bps = max(one.share for one in sites), offer.rates_bps[-1]
    if arrivals.mean_bps * share < circuit_bps(asked, offer, widest_bps):
        return None
    least = least_rate(arrivals, Objective(objective.share, objective.latency_s * SURELY))
    needed_bps = (least.rate_bps if least is not None else arrivals.mean_bps) * share
    widest = f"the widest step of offer {offer.offer} is {megabits(widest_bps)}"
    if offer.core is not None:
        carried = f"a way by {offer.core.said} carries {megabits(circuit_bps(asked, offer, widest_bps))}"
        beside = f"the slowest other segment {megabits(offer.beside_bps)}" if math.isfinite(offer.beside_bps) else ""
        widest = ", ".join(part for part in (carried, widest, beside) if part)
    return f"the feed needs {megabits(needed_bps)} and {widest}"


def _worst(asked: Asked, sites: Sequence[SiteFacts]) -> PathFacts:
    slowest = min(sites, key=lambda one: routed_bps(asked, one))
    return replace(slowest, round_trip_s=max(one.round_trip_s for one in sites))


def _at_share(sojourn_s: Floats, share: float) -> float:
    within = max(math.ceil(share * len(sojourn_s) - 1e-9), 1)
    return float(np.partition(sojourn_s, within - 1)[within - 1])


LEAST_HOLD_S = 1.0
"""Shorter silences are those of every train, and an order takes the time of many parts of the system."""
LEAST_RELEASED = 0.05
"""A circuit released for less of the time is a static one with an obstructive set-up."""
HOLDS_TRIED, HABIT_STARTS = 4, 64
ABOVE = 1.1
"""Silences to come are not exactly those seen."""
KEPT_OF_LEAST = 0.5
"""Of the time that the least hold gives back: one that keeps more is near the longest silences, which vary."""
ROOMY, WORTH_OF_ROOM = 0.75, 2.5
"""The latency aimed at, as a share of the objective, unless that costs so many times more."""
LEAST_FACTOR = 1e-3
