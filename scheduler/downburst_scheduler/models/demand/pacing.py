"""The pace of a day's budget of circuits: with too little for the rest of the day, only the best gains are ordered.

A look's gain is the cost that orders save, in bits per second for each circuit while it is reserved. If the budget's
rest pays for a share of the orders to come, it is kept for the looks of greatest gain: those above a least gain that
rises while orders are made and falls while they are not, so that the gains above it are that share of all (a quantile
found by stochastic approximation). Nothing is known of gains to come but that they are like those seen.
"""

import math
from dataclasses import dataclass

from downburst_scheduler.models.offers import Rest


@dataclass(frozen=True, slots=True)
class Saving:
    """The memory of one feed and offer between looks."""

    least_gain: float = 0.0
    """The gain from which orders are made, while the budget is too small for all of them."""
    saves: bool = False
    """True while the budget is kept for greater gains."""
    at_s: float = 0.0
    """The time of the last look."""


def affordable_share(rest: Rest, circuits: float) -> float:
    """The share of the day's rest for which the budget pays this mean number of reserved circuits; at most 1."""
    needed_s = max(circuits, 0.0) * max(rest.day_s, 0.0)
    if needed_s <= max(rest.circuit_s, 0.0):
        return 1.0
    return max(rest.circuit_s, 0.0) / needed_s


def saving(before: Saving | None, *, gain: float, share: float, now_s: float, day_s: float) -> Saving:
    """The decision of this look about a budget that pays for this share of the orders to come.

    `share` is from 0 to 1. Within `day_s` times `TURN` the least gain falls by its own size, and rises by the gain
    times the ratio of orders that are not paid for to those that are: it follows gains of hours and not their noise.
    """
    gain = min(max(gain, 0.0), MOST_GAIN_BPS) if math.isfinite(gain) else 0.0
    if share >= 1:
        return Saving(at_s=now_s)
    if before is None:
        return Saving(gain * FIRST, at_s=now_s)
    passed = min(max(now_s - before.at_s, 0.0) / (day_s * TURN), 1.0)
    unpaid = 1 / max(share, LEAST_SHARE) - 1
    rise = -before.least_gain * passed if before.saves else gain * min(passed * unpaid, 1.0)
    least_gain = before.least_gain + rise
    above = gain > least_gain * (1 + BAND) if before.saves else gain >= least_gain * (1 - BAND)
    return Saving(least_gain, not above, now_s)


FIRST = 0.6
"""The first least gain, as a share of the first gain: greater ones may come, so it is not all, and not none."""
TURN = 0.2
"""The share of a day in which the least gain follows the gains."""
LEAST_SHARE = 1e-6
MOST_GAIN_BPS = 1e18
"""More than any network saves; sums of gains stay numbers."""
BAND = 0.05
"""Gains so near the least one change nothing, so that plans do not follow each other's noise."""
