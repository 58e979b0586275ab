"""The input with the smallest change that would flip a choice, found by repeated evaluation.

All inputs are raised and lowered a little, then by more, until one changes the choice; that change is bisected (on a
logarithmic scale) to some per cent.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from downburst.domain.plans import Transport
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import duration, megabits, sites_of
from downburst_scheduler.models.candidates import Evaluated, evaluate
from downburst_scheduler.models.offers import DemandOffer
from downburst_scheduler.models.parts import Asked, asked_of
from downburst_scheduler.models.population import Alike, alike, count_of, outlined, scaled
from downburst_scheduler.models.situation import Situation
from downburst_scheduler.models.sizing import Objective

Prefer = Callable[[Sequence[Evaluated]], Transport]
"""Chooses one of the evaluated transports."""


@dataclass(frozen=True, slots=True)
class Flip:
    """An input, its value, and the value at which another transport is chosen."""

    name: str
    now: float
    then: float
    transport: Transport
    sentence: str


def flip(arrivals: Arrivals, situation: Situation, prefer: Prefer) -> Flip | None:
    """The nearest change that flips the choice; None if no single input does within a factor of ten."""
    base = _Base(arrivals, situation, outlined(alike(situation.sites, most=KINDS_OF_SITES)))
    chosen = prefer(evaluate(base.asked))
    inputs = [one for one in _inputs(base) if one.now > 0 and math.isfinite(one.now)]
    for near, far in pairwise(FACTORS):
        found = [_between(one, near, far, chosen, prefer) for one in inputs]
        flips = [one for one in found if one is not None]
        if flips:
            return min(flips, key=lambda one: abs(math.log(one.then / one.now)))
    return None


@dataclass(frozen=True, slots=True)
class _Base:
    """The input of a comparison, with modifications."""

    arrivals: Arrivals
    situation: Situation
    population: tuple[Alike, ...]

    @property
    def asked(self) -> Asked:
        return asked_of(self.arrivals, self.situation, self.population)

    def louder(self, factor: float) -> "_Base":
        return replace(self, arrivals=replace(self.arrivals, size_bytes=self.arrivals.size_bytes * factor))

    def with_sites(self, factor: float) -> "_Base":
        return replace(self, population=scaled(self.population, factor))

    def with_egress(self, factor: float) -> "_Base":
        return self._under(replace(self.situation, egress_bps=self.situation.egress_bps * factor))

    def laxer(self, factor: float) -> "_Base":
        objective = self.situation.objective
        return self._under(
            replace(self.situation, objective=Objective(objective.share, objective.latency_s * factor))
        )

    def paced(self, factor: float) -> "_Base":
        rate_bps = self.situation.multicast_rate_bps * factor
        return self._under(replace(self.situation, multicast_rate_bps=rate_bps))

    def lossier(self, factor: float) -> "_Base":
        def more(one: Alike) -> Alike:
            return replace(one, facts=replace(one.facts, loss=min(one.facts.loss * factor, MOST_LOSS)))

        return replace(self, population=tuple(more(one) for one in self.population))

    def dearer(self, factor: float) -> "_Base":
        costs = self.situation.costs
        return self._under(replace(self.situation, costs=replace(costs, circuit=costs.circuit * factor)))

    def slower_orders(self, factor: float) -> "_Base":
        return self._with_offers(lambda offer: replace(offer, setup_s=offer.setup_s * factor))

    def dearer_orders(self, factor: float) -> "_Base":
        return self._with_offers(lambda offer: replace(offer, price=offer.price * factor))

    @property
    def offers(self) -> list[DemandOffer]:
        """The offers of circuits on demand."""
        return [one.facts.demand for one in self.population if one.facts.demand is not None]

    def _with_offers(self, changed: Callable[[DemandOffer], DemandOffer]) -> "_Base":
        def other(one: Alike) -> Alike:
            offer = one.facts.demand
            return one if offer is None else replace(one, facts=replace(one.facts, demand=changed(offer)))

        return replace(self, population=tuple(other(one) for one in self.population))

    def _under(self, situation: Situation) -> "_Base":
        return replace(self, situation=situation)


@dataclass(frozen=True, slots=True)
class _Input:
    """An input that can be scaled."""

    name: str
    now: float
    scaled: Callable[[float], _Base]
    said: Callable[[float], str]
    whole: bool = False
    """True if it is an integer."""


def _inputs(base: _Base) -> Iterator[_Input]:
    situation, objective = base.situation, base.situation.objective
    yield _Input("traffic", base.arrivals.mean_bps, base.louder, lambda at: f"{megabits(at)} of traffic")
    yield _Input("sites", count_of(base.population), base.with_sites, sites_of, whole=True)
    yield _Input("egress", situation.egress_bps, base.with_egress, lambda at: f"{megabits(at)} of free egress")
    yield _Input("objective", objective.latency_s, base.laxer, lambda at: f"an objective of {duration(at * 1e3)}")
    yield _Input("group rate", situation.multicast_rate_bps, base.paced, lambda at: f"groups at {megabits(at)}")
    loss = max((one.facts.loss for one in base.population), default=0.0)
    yield _Input("loss", loss, base.lossier, lambda at: f"a loss of {at:.2%}")
    price = situation.costs.circuit
    yield _Input("circuit cost", price, base.dearer, lambda at: f"circuits at {at:.2f} times the cost of egress")
    setup_s = max((offer.setup_s for offer in base.offers), default=0.0)
    yield _Input("set-up", setup_s, base.slower_orders, lambda at: f"a set-up of circuits of {duration(at * 1e3)}")
    price = max((offer.price for offer in base.offers), default=0.0)
    yield _Input("order price", price, base.dearer_orders, lambda at: f"orders at {at:.2f} times the cost of egress")


def _between(one: _Input, near: float, far: float, chosen: Transport, prefer: Prefer) -> Flip | None:
    """The smaller of the changes up and down that lie between these factors."""

    def answer(factor: float) -> Transport:
        return prefer(evaluate(one.scaled(_whole(one, factor)).asked))

    found = [_halved(answer, chosen, near, far), _halved(answer, chosen, 1 / near, 1 / far)]
    changes = [change for change in found if change is not None]
    if not changes:
        return None
    factor, transport = min(changes, key=lambda change: abs(math.log(change[0])))
    then = one.now * _whole(one, factor)
    return Flip(one.name, one.now, then, transport, f"{transport} at {one.said(then)} instead of {one.said(one.now)}")


def _halved(
    answer: Callable[[float], Transport], chosen: Transport, near: float, far: float
) -> tuple[float, Transport] | None:
    """The least factor found with another choice, and that choice; None if the far factor does not change it."""
    low, high, other = math.log(near), math.log(far), answer(far)
    if other is chosen:
        return None
    while abs(high - low) > math.log(PRECISION):
        middle = (low + high) / 2
        found = answer(math.exp(middle))
        if found is chosen:
            low = middle
        else:
            high, other = middle, found
    return math.exp(high), other


def _whole(one: _Input, factor: float) -> float:
    """More sites are rounded up and fewer down, so that the reported number does flip the choice."""
    if not one.whole:
        return factor
    count = math.ceil(one.now * factor - 1e-9) if factor > 1 else math.floor(one.now * factor + 1e-9)
    return max(count, 1) / one.now


FACTORS = (1.0, 1.2, 2.0, 10.0)
"""The steps in which all inputs are changed; larger changes are of no interest."""
PRECISION = 1.05
KINDS_OF_SITES = 8
"""A flip is a hint, and evaluations are expensive."""
MOST_LOSS = 0.5
"""Share of packets; beyond that no transport is of use."""
