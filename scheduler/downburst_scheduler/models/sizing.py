"""The least rate of a circuit that keeps an objective, its confidence, and a validation on later data."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from downburst_scheduler.figures.histograms import Floats
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.queues import backlog_bytes, waits


@dataclass(frozen=True, slots=True)
class Objective:
    """A share of the products that must be at their site within a number of seconds."""

    share: float = 0.99
    latency_s: float = 5.0


@dataclass(frozen=True, slots=True)
class CircuitSize:
    """A circuit's rate for one feed and its consequences."""

    rate_bps: float
    utilisation: float
    buffer_bytes: float
    sojourn_s: float
    """The objective's quantile of the sojourn at this rate."""


@dataclass(frozen=True, slots=True)
class SizingStudy:
    """A size with its bootstrap interval, and the size of the first half of the time validated on the second."""

    size: CircuitSize
    low_bps: float
    high_bps: float
    """Nine of ten resampled windows need a rate between these."""
    trained_bps: float
    validated_share: float
    """The share of products within the objective, in the second half, at the rate of the first."""


def least_rate(arrivals: Arrivals, objective: Objective, *, away_s: float = 0.0) -> CircuitSize | None:
    """The least rate by bisection, exact to a part in a thousand; None if the path alone takes too long."""
    allowed_s = objective.latency_s - away_s
    if allowed_s <= 0 or len(arrivals.at_s) == 0:
        return None

    def keeps(rate_bps: float) -> bool:
        return _at_share(_sojourns(arrivals, rate_bps), objective.share) <= allowed_s

    rate_bps = _least(keeps, start_bps=max(arrivals.mean_bps, 1.0))
    return size_at(arrivals, rate_bps, objective)


def size_at(arrivals: Arrivals, rate_bps: float, objective: Objective) -> CircuitSize:
    """The consequences of a given rate."""
    sojourn_s = _sojourns(arrivals, rate_bps)
    wait_s = sojourn_s - arrivals.size_bytes * 8 / rate_bps
    quantile_s = _at_share(sojourn_s, objective.share)
    buffer = backlog_bytes(wait_s, arrivals.size_bytes, rate_bps)
    return CircuitSize(rate_bps, arrivals.mean_bps / rate_bps, buffer, quantile_s)


def study(arrivals: Arrivals, objective: Objective, *, away_s: float = 0.0, seed: int = 1) -> SizingStudy | None:
    """Size, interval and validation; None if there are too few data, or no rate is enough."""
    size = least_rate(arrivals, objective, away_s=away_s)
    half_s = arrivals.span_s / 2
    first, second = between(arrivals, 0.0, half_s), between(arrivals, half_s, arrivals.span_s + 1)
    trained = least_rate(first, objective, away_s=away_s)
    if size is None or trained is None or len(second.at_s) == 0:
        return None
    low_bps, high_bps = _interval(arrivals, size.rate_bps, objective, away_s=away_s, seed=seed)
    inside = float((_sojourns(second, trained.rate_bps) <= objective.latency_s - away_s).mean())
    return SizingStudy(size, low_bps, high_bps, trained.rate_bps, inside)


def between(arrivals: Arrivals, begin_s: float, end_s: float) -> Arrivals:
    """The arrivals of a part of the time, counted from its beginning."""
    first, last = np.searchsorted(arrivals.at_s, [begin_s, end_s])
    span_s = min(end_s, arrivals.span_s) - begin_s
    return Arrivals(arrivals.at_s[first:last] - begin_s, arrivals.size_bytes[first:last], max(span_s, 1.0))


def _least(keeps: Callable[[float], bool], *, start_bps: float) -> float:
    low_bps, high_bps = 0.0, start_bps
    while not keeps(high_bps):
        low_bps, high_bps = high_bps, high_bps * 2
    if low_bps == 0.0:
        low_bps = high_bps / 1024
    while high_bps / low_bps > PRECISION:
        middle_bps = (low_bps * high_bps) ** 0.5
        low_bps, high_bps = (low_bps, middle_bps) if keeps(middle_bps) else (middle_bps, high_bps)
    return high_bps


def _interval(
    arrivals: Arrivals, rate_bps: float, objective: Objective, *, away_s: float, seed: int
) -> tuple[float, float]:
    """Bootstrap over blocks of time: hours if there are enough, otherwise twelfths of the whole.

    Late products are counted once per block and rate; resampling blocks then costs next to nothing.
    """
    blocks = min(max(FEWEST_BLOCKS, int(arrivals.span_s // 3600)), MOST_BLOCKS)
    block = np.minimum((arrivals.at_s / arrivals.span_s * blocks).astype(np.int64), blocks - 1)
    rates = rate_bps * np.geomspace(1 / WIDEST, WIDEST, RATES_TRIED)
    allowed_s = objective.latency_s - away_s
    late: Floats = np.array(
        [np.bincount(block[_sojourns(arrivals, rate) > allowed_s], minlength=blocks) for rate in rates],
        dtype=np.float64,
    )
    products = np.bincount(block, minlength=blocks).astype(np.float64)
    drawn = np.random.default_rng(seed).multinomial(blocks, [1 / blocks] * blocks, size=RESAMPLED).astype(np.float64)
    kept = late @ drawn.T <= (1 - objective.share) * (products @ drawn.T) + 1e-9
    needed = np.where(kept.any(axis=0), rates[np.argmax(kept, axis=0)], rates[-1])
    low_bps, high_bps = np.quantile(needed, [0.05, 0.95])
    return float(low_bps), float(high_bps)


def _sojourns(arrivals: Arrivals, rate_bps: float) -> Floats:
    service_s = arrivals.size_bytes * 8 / rate_bps
    result: Floats = waits(arrivals.at_s, service_s) + service_s
    return result


def _at_share(sojourn_s: Floats, share: float) -> float:
    """The value that this share of the products does not exceed; their number is rounded up, with a tolerance."""
    within = max(math.ceil(share * len(sojourn_s) - 1e-9), 1)
    return float(np.partition(sojourn_s, within - 1)[within - 1])


PRECISION = 1.001
FEWEST_BLOCKS, MOST_BLOCKS = 12, 24 * 31
RESAMPLED = 400
WIDEST, RATES_TRIED = 4.0, 57
"""A quarter to four times the rate, in steps of 5 %."""
