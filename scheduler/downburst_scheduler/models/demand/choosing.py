"""The terms of orders for sites of one offer: the rate step, the hold, and whether to order ahead of trains.

The feed's own recent arrivals are played under each of them, with holds from their own silences. The cheapest terms
that meet the objective with room are chosen. The price of orders is their rate x the share of the time reserved x the
offer's price, in bit/s equivalents of egress.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from downburst.domain.plans import Transport
from downburst_scheduler.figures.histograms import Floats
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import megabits
from downburst_scheduler.models import wire
from downburst_scheduler.models.costs import Service, lateness
from downburst_scheduler.models.demand.habit import Habit
from downburst_scheduler.models.demand.playing import LEAST_BPS, Reservations, recurring, sojourns_s
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.offers import PAYLOAD_SHARE, DemandOffer
from downburst_scheduler.models.parts import SURELY, Asked
from downburst_scheduler.models.queues import waits
from downburst_scheduler.models.rates import RELAYED_SHARE, PathFacts, connection_bps, whole
from downburst_scheduler.models.situation import Calibration, SiteFacts
from downburst_scheduler.models.sizing import Objective, least_rate


@dataclass(frozen=True, slots=True)
class Choice:
    """Terms, and the reason not to order under them; None if orders are worthwhile."""

    terms: DemandTerms
    refusal: str | None = None


def choice_for(asked: Asked, sites: Sequence[SiteFacts], offer: DemandOffer) -> Choice:
    """One choice for several sites with this offer, by the slowest and the longest of their paths.

    Without arrivals, trains are expected to need the widest step.
    """
    least = DemandTerms(sites[0].name, offer.offer, offer.rates_bps[-1], offer.setup_s, least_hold_s(offer))
    if not asked.figures:
        return Choice(least)
    refusal = _never_released(asked.arrivals, offer, least) or _above_every_step(asked, sites, offer)
    # A feed that rides while it is refused rides on the cheapest terms until it leaves.
    return Choice(_cheapest(_Tried(asked, offer, _worst(asked, sites)), least), refusal)


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
        self._late_s: dict[DemandTerms, float] = {}
        self._objective = asked.situation.objective

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
        if terms not in self._late_s:
            sojourn_s = sojourns_s(
                self.arrivals,
                self.held(terms),
                routed_bps=self.routed_bps,
                circuit_bps=circuit_bps(self._asked, self.offer, terms.rate_bps),
                share=self._path.share,
            )
            self._late_s[terms] = self._calibrated_s(sojourn_s, Transport.DYNAMIC_CIRCUIT)
        return self._late_s[terms]

    def service(self, terms: DemandTerms) -> Service:
        """The service to a site under these terms."""
        return Service(self.price_bps(terms), self.late_s(terms))

    @cached_property
    def routed(self) -> Service:
        """The service to the site over the routed path."""
        service_s = self.arrivals.size_bytes * 8 / max(self.routed_bps, LEAST_BPS)
        sojourn_s = waits(self.arrivals.at_s, service_s * self._path.share) + service_s
        price_bps = self._asked.for_copies.mean_bps * self._path.share
        return Service(price_bps, self._calibrated_s(sojourn_s, Transport.UNICAST))

    def cost_bps(self, terms: DemandTerms) -> float:
        """The price, and for the risk of a missed objective a part of the greater of it and the routed path's price.

        Terms that miss the objective have no price to be chosen for.

        Trains to come differ, so a latency near the objective is weighed as a miss of some probability; without room
        it is weighed as almost a sure one, and the planner would not change to it.
        """
        found = self.service(terms)
        used = found.late_s / self._objective.latency_s
        if used > SURELY:
            return math.inf
        risk = RISK * max(used - SAFELY, 0.0) / (ROOMY - SAFELY) if used <= ROOMY else RISK_WITHOUT_ROOM
        return found.price_bps + risk * max(found.price_bps, self.routed.price_bps)

    def late_cost_bps(self, terms: DemandTerms, soonest_s: float) -> float:
        """The cost if no terms meet the objective: twice as late as the soonest is the worst."""
        found, least_s = self.service(terms), min(soonest_s, self.routed.late_s)
        late = lateness(found.late_s, max(least_s, self._objective.latency_s), least_s)
        return found.price_bps + late * max(found.price_bps, self.routed.price_bps)

    def _calibrated_s(self, sojourn_s: Floats, transport: Transport) -> float:
        late_s = _at_share(sojourn_s, self._objective.share) + whole(self._path).round_trip_s / 2
        return late_s * self._asked.situation.calibration.get(transport, Calibration()).at(self._objective.share)


def _cheapest(tried: _Tried, least: DemandTerms) -> DemandTerms:
    """The terms of least cost that release enough: the price, with the risk or the cost of a missed objective."""
    enough = max(tried.released(least) * KEPT_OF_LEAST, LEAST_RELEASED)
    holds = [one for one in _holds(tried, least) if tried.released(one) >= enough] or [least]
    options = [replace(one, rate_bps=rate_bps) for one in holds for rate_bps in tried.offer.rates_bps]
    best, best_bps = None, math.inf
    for terms in sorted(options, key=tried.price_bps):
        if tried.price_bps(terms) >= best_bps:
            break
        if (cost_bps := tried.cost_bps(terms)) < best_bps:
            best, best_bps = terms, cost_bps
    if best is not None:
        return best
    soonest_s = min(map(tried.late_s, options))
    return min(options, key=lambda one: tried.late_cost_bps(one, soonest_s))


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
SAFELY, ROOMY = 0.2, 0.75
"""The shares of the objective up to which a latency is no risk, and has room."""
RISK, RISK_WITHOUT_ROOM = 0.5, 0.9
"""The risk of a miss of a latency that just has room, and of one that just meets the objective."""
