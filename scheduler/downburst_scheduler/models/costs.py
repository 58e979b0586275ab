"""The cost of a transport's service: its price, and that of being late, both in bits per second of egress.

A service that misses an objective which another one meets pays the dearest one's price on top. If none meets it, one
that is twice as late as the soonest pays that price on top, and one in between its share of it. The simulated days of
the tests measure regret in the same unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """The outcome of one way to serve a feed."""

    price_bps: float
    late_s: float
    """The objective's quantile of the latency."""
    is_possible: bool = True
    """False if it can't keep an objective whatever its latency: it is refused, or overloads the hub."""


def costs_bps(services: Sequence[Service], limit_s: float) -> list[float]:
    """The cost of each of these services, in bits per second of egress; `limit_s` is the objective's latency."""
    dearest_bps = max((one.price_bps for one in services), default=0.0)
    soonest_s = min((one.late_s for one in services), default=0.0)
    is_met = any(one.is_possible and one.late_s <= limit_s for one in services)

    def late(one: Service) -> float:
        if is_met:
            return float(not one.is_possible or one.late_s > limit_s)
        return lateness(one.late_s, max(limit_s, soonest_s), soonest_s)

    return [one.price_bps + dearest_bps * late(one) for one in services]


def lateness(late_s: float, free_s: float, soonest_s: float) -> float:
    """The share of the dearest price to pay for a delay: none up to `free_s`, all from twice the soonest."""
    return 0.0 if late_s <= free_s else min(max(late_s / max(soonest_s, LEAST_S) - 1, 0.0), 1.0)


LEAST_S = 1e-9
