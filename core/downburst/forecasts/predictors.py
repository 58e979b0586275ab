"""Five ways to predict the next rate of a path from its recent rates. Pure: each sees the window and nothing else."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from statistics import median as middle

import numpy as np


@dataclass(frozen=True, slots=True)
class Sample:
    """A measured rate; the size is known if it is that of one transfer."""

    rate_bps: float
    size_bytes: float | None = None

    @property
    def sound(self) -> bool:
        """True if the figures can be those of a path."""
        sized = self.size_bytes is None or 1 <= self.size_bytes <= MOST
        return sized and 1 <= self.rate_bps <= MOST


Window = Sequence[Sample]
"""Sound samples, the oldest first; never empty."""
Predictor = Callable[[Window, float | None], float]
"""The rate to come, in bits per second, from the window and the size of the coming transfer, if it is known."""


def mean(window: Window, _size_bytes: float | None = None) -> float:
    """The mean of recent rates."""
    return fmean(one.rate_bps for one in window[-MEAN_OF:])


def median(window: Window, _size_bytes: float | None = None) -> float:
    """The median of recent rates: single outliers do not move it."""
    return middle(one.rate_bps for one in window[-MEDIAN_OF:])


def ewma(window: Window, _size_bytes: float | None = None) -> float:
    """A mean in which each sample weighs less than the one after it, by a constant factor."""
    rate_bps = window[0].rate_bps
    for one in window[1:]:
        rate_bps += GAIN * (one.rate_bps - rate_bps)
    return rate_bps


def autoregression(window: Window, _size_bytes: float | None = None) -> float:
    """The regression of each rate on the two before it, by least squares over the window.

    It stays within the rates of the window, so that no fit to a few samples can run away. With too few samples, or
    with equal ones, it is the exponential mean.
    """
    rates = np.array([one.rate_bps for one in window])
    least, most, at = float(rates.min()), float(rates.max()), float(rates.mean())
    if len(rates) < FEWEST_TO_FIT or most - least <= EQUAL * most:
        return ewma(window)
    around = rates - at
    before = np.stack([around[ORDER - 1 - lag : -1 - lag] for lag in range(ORDER)], axis=1)
    squares = before.T @ before
    squares += np.eye(ORDER) * (RIDGE * float(np.trace(squares)) / ORDER + 1.0)
    factors = np.linalg.solve(squares, before.T @ around[ORDER:])
    return min(max(at + float(factors @ around[: -ORDER - 1 : -1]), least), most)


def nearest(window: Window, size_bytes: float | None = None) -> float:
    """The mean rate of the transfers that are nearest in size, of equally near ones the newest.

    Sizes are compared by ratio. Without sizes, the newest rates are the nearest.
    """
    sized = [one for one in window if one.size_bytes]
    if not size_bytes or not sized:
        return fmean(one.rate_bps for one in window[-NEIGHBOURS:])
    newest_first, at = reversed(sized), math.log(size_bytes)
    by_size = sorted(newest_first, key=lambda one: abs(math.log(one.size_bytes or 1) - at))
    return fmean(one.rate_bps for one in by_size[:NEIGHBOURS])


PREDICTORS: Mapping[str, Predictor] = {
    "mean": mean,
    "median": median,
    "ewma": ewma,
    "autoregression": autoregression,
    "nearest": nearest,
}
MOST = 1e15
"""No path carries more bits per second, and no transfer has more bytes."""
MEAN_OF = 20
MEDIAN_OF = 11
GAIN = 0.3
ORDER = 2
FEWEST_TO_FIT = 12
"""Four equations for each factor and for the mean."""
EQUAL = 1e-9
RIDGE = 1e-3
"""Keeps the equations solvable when a rate follows from the one before it."""
NEIGHBOURS = 3
