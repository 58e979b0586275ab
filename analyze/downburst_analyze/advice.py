"""Advice about circuits for one feed: the rate to order, set-up and hold times, and the value of a faster set-up.

A circuit on demand is requested when a product arrives and is given back after a silence of the hold time. The share
of time given back follows from the gaps alone (`releases`). The added latency is the difference between playing the
arrivals through a circuit on demand and through a permanent one of the same rate.
"""

import math
from dataclasses import dataclass

import numpy as np

from downburst_scheduler.figures.histograms import Floats
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import duration, megabits
from downburst_scheduler.models.candidates import Situation
from downburst_scheduler.models.queues import waits
from downburst_scheduler.models.sizing import Objective, SizingStudy
from downburst_scheduler.models.transports import releases, session_starts


@dataclass(frozen=True, slots=True)
class Terms:
    """A set-up time with a hold time, and their consequences at the ordered rate."""

    setup_s: float
    hold_s: float
    released_share: float
    """Of the time; the circuit is free for others."""
    releases_a_day: float
    added_mean_s: float
    """Mean latency added to a product by set-ups."""
    added_at_objective_s: float
    """The same at the objective's percentile."""
    keeps_objective: bool


@dataclass(frozen=True, slots=True)
class SetupWorth:
    """The most that a set-up time allows to give back within the objective."""

    setup_s: float
    hold_s: float | None
    """The hold time that gives back most; None if none gives anything back and keeps the objective."""
    freed_bps: float
    """Mean rate of the circuit that is free for others."""
    gained_bps: float
    """More than with the next longer set-up time."""


@dataclass(frozen=True, slots=True)
class Advice:
    """An order for one feed."""

    order_bps: float
    terms: tuple[Terms, ...]
    worth: tuple[SetupWorth, ...]
    """The longest set-up time first."""
    sentence: str


def advise(arrivals: Arrivals, sizing: SizingStudy | None, situation: Situation) -> Advice | None:
    """The advice; None if no rate meets the objective, or too little is recorded for a size."""
    if sizing is None:
        return None
    order_bps = whole_megabits_bps(max(sizing.size.rate_bps, sizing.high_bps))
    away_s = max((site.round_trip_s for site in situation.sites), default=0.0) / 2
    table = _Table(arrivals, order_bps, situation.objective, away_s)
    terms = tuple(table.terms(setup_s, hold_s) for setup_s, hold_s in _grid(situation))
    worth = _worth(terms, order_bps)
    return Advice(order_bps, terms, worth, _sentence(order_bps, terms, worth, situation))


def whole_megabits_bps(rate_bps: float) -> float:
    """The next whole number of Mb/s, in which circuits are ordered."""
    return max(math.ceil(rate_bps / 1e6), 1) * 1e6


class _Table:
    """Plays the first `MOST_PLAYED` arrivals through circuits of one rate, which are up when the recording begins."""

    def __init__(self, arrivals: Arrivals, rate_bps: float, objective: Objective, away_s: float) -> None:
        self._arrivals = arrivals
        self._played = _first(arrivals)
        self._service_s = self._played.size_bytes * 8 / rate_bps
        self._objective = objective
        self._away_s = away_s
        self._permanent_s = waits(self._played.at_s, self._service_s) + self._service_s

    def terms(self, setup_s: float, hold_s: float) -> Terms:
        gaps = releases(self._arrivals, setup_s=setup_s, hold_s=hold_s)
        sojourn_s = self._sojourns(setup_s, gaps.hold_s)
        latency_s = self._at_objective(sojourn_s)
        return Terms(
            setup_s=setup_s,
            hold_s=gaps.hold_s,
            released_share=gaps.share_of_time,
            releases_a_day=gaps.releases * DAY_S / self._arrivals.span_s,
            added_mean_s=float((sojourn_s - self._permanent_s).mean()),
            added_at_objective_s=latency_s - self._at_objective(self._permanent_s),
            keeps_objective=latency_s + self._away_s <= self._objective.latency_s,
        )

    def _sojourns(self, setup_s: float, hold_s: float) -> Floats:
        at_s = self._played.at_s
        again = session_starts(at_s, self._service_s, setup_s=setup_s, hold_s=hold_s)[1:]
        delayed_s = self._service_s.copy()
        delayed_s[again] += setup_s
        return waits(at_s, delayed_s) + delayed_s

    def _at_objective(self, sojourn_s: Floats) -> float:
        return float(np.quantile(sojourn_s, self._objective.share))


def _first(arrivals: Arrivals) -> Arrivals:
    if len(arrivals.at_s) <= MOST_PLAYED:
        return arrivals
    at_s = arrivals.at_s[:MOST_PLAYED]
    return Arrivals(at_s, arrivals.size_bytes[:MOST_PLAYED], max(float(at_s[-1]), 1.0))


def _grid(situation: Situation) -> list[tuple[float, float]]:
    """Pairs of set-up and hold, with those of the offer; no hold is shorter than the set-up, which frees nothing."""
    setups = sorted({*SETUPS_S, situation.circuits.setup_s}, reverse=True)
    holds = sorted({*HOLDS_S, situation.circuits.hold_s})
    return list(dict.fromkeys((setup_s, max(hold_s, setup_s)) for setup_s in setups for hold_s in (0.0, *holds)))


def _worth(terms: tuple[Terms, ...], order_bps: float) -> tuple[SetupWorth, ...]:
    found: list[SetupWorth] = []
    for setup_s in dict.fromkeys(one.setup_s for one in terms):
        useful = [one for one in terms if one.setup_s == setup_s and one.keeps_objective and one.released_share > 0]
        best = max(useful, key=lambda one: one.released_share, default=None)
        freed_bps = best.released_share * order_bps if best else 0.0
        gained_bps = freed_bps - found[-1].freed_bps if found else 0.0
        found.append(SetupWorth(setup_s, best.hold_s if best else None, freed_bps, gained_bps))
    return tuple(found)


def _sentence(order_bps: float, terms: tuple[Terms, ...], worth: tuple[SetupWorth, ...], situation: Situation) -> str:
    offered = next(one for one in worth if one.setup_s == situation.circuits.setup_s)
    order = f"order {megabits(order_bps)}"
    if offered.hold_s is None:
        never = "no hold time frees it within the objective"
        order = f"{order} and keep it up: with a set-up of {offered.setup_s:g} s {never}"
    else:
        found = next(one for one in terms if (one.setup_s, one.hold_s) == (offered.setup_s, offered.hold_s))
        free = f"a hold of {found.hold_s:g} s gives back {found.released_share:.1%} of the time"
        added = f"adds {duration(found.added_mean_s * 1e3)} to the mean latency"
        order = f"{order}; with a set-up of {found.setup_s:g} s {free} and {added}"
    faster = [one for one in worth if one.setup_s < offered.setup_s]
    best = max(faster, key=lambda one: (one.freed_bps, one.setup_s), default=offered)
    gain_bps = best.freed_bps - offered.freed_bps
    if gain_bps <= LEAST_GAIN * order_bps:
        return f"{order}; a shorter set-up gives back hardly more"
    return f"{order}; a set-up of {best.setup_s:g} s frees {megabits(gain_bps)} more on average"


SETUPS_S = (60.0, 10.0, 1.0, 0.05)
HOLDS_S = (1.0, 10.0, 30.0, 60.0)
MOST_PLAYED = 1_000_000
LEAST_GAIN = 0.01
DAY_S = 86_400.0
