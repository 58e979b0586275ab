"""The choice of a site's way to its hub: direct, or over a relay that surely brings more.

A pure function of prices and of its own memory from the last look, with the planner's rules: a change must gain
enough, several looks must agree, and the last change must be long enough ago. A relay that is gone, or whose measured
rate is below that of the direct way, is left immediately; after a bad rate it rests, each time twice as long.
"""

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from downburst_scheduler.models.ways import DirectWay, Priced, RelayWay, direct_price, relay_price
from downburst_scheduler.planner import Rules

Chain = tuple[str, ...]
"""Names of relays, the nearest to the site first; empty: the direct way."""
DIRECT: Chain = ()


class WayBecause(StrEnum):
    """The kind of reason for a way; a new kind is stored, other figures alone are not."""

    NO_RELAY = "no-relay"
    UNKNOWN = "unknown"
    BEST = "best"
    WAITING = "waiting"
    WOULD = "would-change"
    GONE = "gone"
    WORSE = "worse"
    RESTING = "resting"


@dataclass(frozen=True, slots=True)
class Rest:
    """A way that brought less than the direct one, and is left alone for some time."""

    chain: Chain
    until_s: float
    times: int = 1


@dataclass(frozen=True, slots=True)
class WayMemory:
    """The memory of a site's way between looks."""

    chain: Chain = DIRECT
    chosen_at_s: float | None = None
    favourite: Chain | None = None
    agreeing: int = 0
    rests: tuple[Rest, ...] = ()
    predicted_bps: float | None = None
    """The prediction on which the relay was taken; what the way measures since includes its own load."""


@dataclass(frozen=True, slots=True)
class WayQuestion:
    """All inputs of a decision for one site."""

    direct: DirectWay
    ways: Sequence[RelayWay]
    """The ways that are open now: relays with sessions that are granted all feeds of the site."""
    shut: str | None = None
    """The reason against the other ways, for people; None if there are no others."""
    measured_bps: float | None = None
    """The rate over the present relay while products waited; None: not measured."""
    now_s: float = 0.0
    memory: WayMemory = WayMemory()
    rules: Rules = field(default_factory=Rules)
    look: bool = True


@dataclass(frozen=True, slots=True)
class WayDecision:
    """The way for a site, and the figures that explain it."""

    because: WayBecause
    memory: WayMemory
    direct: Priced
    priced: tuple[tuple[RelayWay, Priced], ...] = ()
    """Each open way with its price, the fastest first."""
    left: Chain | None = None
    """The way that is left immediately."""

    @property
    def chain(self) -> Chain:
        """The chosen way."""
        return self.memory.chain

    @property
    def predicted_bps(self) -> float | None:
        """The prediction for the chosen way; for a relay in use, that on which it was taken."""
        known = self.memory.predicted_bps if self.chain != DIRECT else None
        return self.price_of(self.chain) if known is None else known

    def price_of(self, chain: Chain) -> float | None:
        """The prediction for a way; None if it has none."""
        if chain == DIRECT:
            return self.direct.rate_bps
        return next((price.rate_bps for way, price in self.priced if way.chain == chain), None)


def decide_way(question: WayQuestion) -> WayDecision:
    """The way for one site at one moment."""
    direct = direct_price(question.direct)
    priced = sorted(
        ((way, relay_price(way, question.direct)) for way in question.ways),
        key=lambda one: (-(one[1].rate_bps or 0.0), len(one[0].chain), one[0].chain),
    )
    standing = question.memory.chain
    found = WayDecision(WayBecause.BEST, question.memory, direct, tuple(priced))
    if standing != DIRECT and all(way.chain != standing for way in question.ways):
        return _left(question, found, WayBecause.GONE, question.memory.rests)
    if _is_worse(question, direct):
        return _left(question, found, WayBecause.WORSE, _rested(question, standing))
    return _weighed(question, found)


def _is_worse(question: WayQuestion, direct: Priced) -> bool:
    if question.memory.chain == DIRECT or question.measured_bps is None or direct.rate_bps is None:
        return False
    return question.measured_bps < direct.rate_bps and not math.isinf(direct.rate_bps)


def _left(question: WayQuestion, found: WayDecision, because: WayBecause, rests: tuple[Rest, ...]) -> WayDecision:
    memory = WayMemory(DIRECT, question.now_s, rests=rests)
    return replace(found, because=because, memory=memory, left=question.memory.chain)


def _rested(question: WayQuestion, chain: Chain) -> tuple[Rest, ...]:
    times = next((rest.times for rest in question.memory.rests if rest.chain == chain), 0) + 1
    rest_s = question.rules.dwell_s * RESTS_DWELLS * 2 ** min(times - 1, MOST_DOUBLINGS)
    others = tuple(rest for rest in question.memory.rests if rest.chain != chain)
    return (*others, Rest(chain, question.now_s + rest_s, times))[-MOST_RESTS:]


def _weighed(question: WayQuestion, found: WayDecision) -> WayDecision:
    memory = question.memory
    if found.direct.rate_bps is None or not found.priced:
        because = WayBecause.UNKNOWN if found.priced else WayBecause.NO_RELAY
        return replace(found, because=because, memory=replace(memory, favourite=None, agreeing=0))
    rests = {rest.chain for rest in memory.rests if question.now_s < rest.until_s}
    preferred = _preferred(question, found, rests)
    if preferred == memory.chain:
        told = any(price.rate_bps is not None for _, price in found.priced)
        because = WayBecause.BEST if told or memory.chain != DIRECT else WayBecause.UNKNOWN
        if rests and _preferred(question, found, set()) in rests:
            because = WayBecause.RESTING
        return replace(found, because=because, memory=replace(memory, favourite=None, agreeing=0))
    agreeing = min(
        (memory.agreeing if memory.favourite == preferred else 0) + question.look, question.rules.agreeing_windows
    )
    held = _held(question, agreeing)
    if held is not None:
        return replace(found, because=held, memory=replace(memory, favourite=preferred, agreeing=agreeing))
    predicted_bps = found.price_of(preferred)
    return replace(
        found, memory=WayMemory(preferred, question.now_s, rests=memory.rests, predicted_bps=predicted_bps)
    )


def _preferred(question: WayQuestion, found: WayDecision, rests: Container[Chain]) -> Chain:
    """The fastest way that gains enough over the present one and does not rest.

    A relay in use is judged by its measured rate alone. Its own bursts lose segments at a full queue, and formulas
    would take these for the loss of the path; and while no products wait, no other way brings them sooner.
    """
    standing = question.memory.chain
    if standing != DIRECT and question.measured_bps is None:
        return standing
    prices = [(DIRECT, found.direct.rate_bps or 0.0)]
    prices += [(way.chain, price.rate_bps or 0.0) for way, price in found.priced if way.chain not in rests]
    best, best_bps = max(prices, key=lambda one: one[1])
    now_bps = found.price_of(DIRECT) if standing == DIRECT else question.measured_bps
    if now_bps is None:
        return standing
    return best if now_bps < best_bps * (1 - question.rules.min_gain) else standing


def _held(question: WayQuestion, agreeing: int) -> WayBecause | None:
    chosen_at_s, rules = question.memory.chosen_at_s, question.rules
    rested = chosen_at_s is None or question.now_s - chosen_at_s >= rules.dwell_s
    if agreeing < rules.agreeing_windows or not rested:
        return WayBecause.WAITING
    return WayBecause.WOULD if rules.dry_run else None


RESTS_DWELLS = 12
"""The first rest of a way that brought less: an hour by the default settings."""
MOST_DOUBLINGS = 4
MOST_RESTS = 16
