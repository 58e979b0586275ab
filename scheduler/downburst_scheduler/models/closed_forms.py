"""Formulas for one product, one peak, one day: bounds that check simulations, and figures for people."""

import math
from dataclasses import dataclass


def unicast_s(size_bytes: float, receivers: int, *, sender_bps: float, link_bps: float, receiver_bps: float) -> float:
    """One product to n receivers at once: n s / min(sender, its link, n receivers)."""
    return receivers * size_bytes * 8 / min(sender_bps, link_bps, receivers * receiver_bps)


def multicast_s(size_bytes: float, *, sender_bps: float, link_bps: float, receiver_bps: float) -> float:
    """One product to any number of receivers without loss."""
    return size_bytes * 8 / min(sender_bps, link_bps, receiver_bps)


def servers_to_match(unicast: float, multicast: float) -> int:
    """How many servers, each with a part of the receivers, make unicast as fast as a group."""
    return math.ceil(unicast / multicast - 1e-9)


def copies_bps(demand_bps: float, receivers: int) -> float:
    """The egress of a copy to each."""
    return demand_bps * receivers


def utilisation(mean_bps: float, peak_bps: float) -> float:
    """How full a circuit is that carries the peak."""
    return mean_bps / peak_bps


def day_mean_bps(bytes_per_day: float) -> float:
    """The mean rate of a day's volume."""
    return bytes_per_day * 8 / 86_400


def saving(unicast_bps: float, multicast_bps: float) -> float:
    """How many times less a group sends."""
    return unicast_bps / multicast_bps


@dataclass(frozen=True, slots=True)
class Amplification:
    """What leaves over what comes in, and the most that groups could save of it."""

    factor: float
    saving_bound: float


def amplification(bytes_in: float, bytes_out: float) -> Amplification:
    """A hub with one group for everybody would send each byte once."""
    return Amplification(bytes_out / bytes_in, 1 - bytes_in / bytes_out)


def peers_help(*, origins: int, fresh: bool) -> bool:
    """Whether receivers could serve each other: not a product that only its origin has when all want it."""
    return origins > 1 or not fresh


def mean_wait_of_poisson_s(utilised: float, mean_service_s: float, squared_variation: float) -> float:
    """Pollaczek and Khinchine; real feeds wait hundreds of times as long, so it is a lower bound and no more."""
    return utilised * mean_service_s * (1 + squared_variation) / (2 * (1 - utilised))


def erlang_b(offered: float, circuits: int) -> float:
    """The share of calls that find all circuits taken."""
    blocked = 1.0
    for count in range(1, circuits + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked
