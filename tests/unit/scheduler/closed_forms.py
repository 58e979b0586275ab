"""Formulas that are independent of the models, which tests hold against them: queues, blocking, short products."""

import math


def unicast_s(size_bytes: float, receivers: int, *, sender_bps: float, link_bps: float, receiver_bps: float) -> float:
    """One product to n receivers in parallel: n s / min(sender, its link, n receivers)."""
    return receivers * size_bytes * 8 / min(sender_bps, link_bps, receivers * receiver_bps)


def multicast_s(size_bytes: float, *, sender_bps: float, link_bps: float, receiver_bps: float) -> float:
    """One product to any number of receivers without loss."""
    return size_bytes * 8 / min(sender_bps, link_bps, receiver_bps)


def day_mean_bps(bytes_per_day: float) -> float:
    """The mean rate of a day's volume."""
    return bytes_per_day * 8 / 86_400


def mean_wait_of_poisson_s(utilised: float, mean_service_s: float, squared_variation: float) -> float:
    """Pollaczek and Khinchine's formula; real feeds wait hundreds of times as long, so it is only a lower bound."""
    return utilised * mean_service_s * (1 + squared_variation) / (2 * (1 - utilised))


def erlang_b(offered: float, circuits: int) -> float:
    """The share of calls that find all circuits taken."""
    blocked = 1.0
    for count in range(1, circuits + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked


def slow_start_rounds(size_bytes: float, *, first_window_bytes: float = 14_480.0) -> int:
    """The number of windows, each twice the one before, that an idle connection needs for a product."""
    return math.ceil(math.log2(1 + size_bytes / first_window_bytes)) if size_bytes > 0 else 0


def short_product_s(
    size_bytes: float, rate_bps: float, round_trip_s: float, *, connected: bool, first_window_bytes: float = 14_480.0
) -> float:
    """The time from the first byte to the acknowledgement of the last, for a product alone."""
    rounds = slow_start_rounds(size_bytes, first_window_bytes=first_window_bytes) + (0 if connected else 1)
    return rounds * round_trip_s + size_bytes * 8 / rate_bps
