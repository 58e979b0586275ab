"""A day of a busy feed to a hundred sites by every transport, in seconds of one core."""

import time

import numpy as np
import pytest

from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.transports import dynamic_circuit, multicast, relayed, static_circuit, unicast


def conduit_like_day(products: int, *, seed: int) -> Arrivals:
    """60 GB of a day in bursts: model runs of hours with silences of seconds inside."""
    random = np.random.default_rng(seed)
    gaps = np.where(
        random.random(products) < 0.02, random.exponential(3.0, products), random.exponential(0.02, products)
    )
    at_s = np.cumsum(gaps)
    sizes = random.lognormal(np.log(25e3), 1.4, products)
    return Arrivals(at_s * 86_400 / at_s[-1], sizes * 60e9 / sizes.sum(), 86_400.0)


def hundred_sites() -> list[PathFacts]:
    """Sites that all differ in distance and loss; half of them have lines of their own."""
    return [
        PathFacts(0.005 + 0.002 * number, 1e-5 * (number % 10), 6e6 + 2e5 * number if number % 2 else 1e9)
        for number in range(100)
    ]


def cpu_seconds_of_all_transports(day: Arrivals, sites: list[PathFacts]) -> float:
    begin = time.process_time()
    unicast(day, sites, egress_bps=1.2e9)
    unicast(day, sites, egress_bps=1.2e9, order=Order.SHORTEST)
    static_circuit(day, sites, rate_bps=33e6)
    dynamic_circuit(day, sites, rate_bps=33e6, setup_s=1, hold_s=10)
    multicast(day, sites, rate_bps=33e6)
    relayed(day, [[PathFacts(0.02, access_bps=1e8), site] for site in sites[:10]], egress_bps=1.2e9)
    return time.process_time() - begin


@pytest.mark.nightly
def test_a_day_of_a_million_products_to_a_hundred_sites_takes_under_ten_seconds_of_a_core() -> None:
    spent_s = cpu_seconds_of_all_transports(conduit_like_day(1_000_000, seed=1), hundred_sites())
    print(f"all transports: {spent_s:.1f} s of one core")
    assert spent_s < 10


def test_twenty_thousand_products_to_a_hundred_sites_take_a_moment() -> None:
    spent_s = cpu_seconds_of_all_transports(conduit_like_day(20_000, seed=1), hundred_sites())
    assert spent_s < 5
