"""The orders of service against stepwise references, and properties that hold for every order."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst_scheduler.figures.histograms import Floats, LogHistogram
from downburst_scheduler.models.queues import Order, backlog_bytes, play, waits

feeds = st.lists(st.tuples(st.floats(0, 20), st.floats(0.01, 4)), min_size=1, max_size=30)


def columns(products: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    ordered = sorted(products)
    return np.array([at for at, _ in ordered]), np.array([service for _, service in ordered])


def sojourns(products: list[tuple[float, float]], order: Order) -> Floats:
    at_s, service_s = columns(products)
    played = play(at_s, service_s, order)
    result = np.empty(len(at_s))
    result[played.index] = played.sojourn_s
    return result


def served_in_steps(products: list[tuple[float, float]], order: Order) -> Floats:
    """A reference that goes from event to event and shares the server by the rule."""
    at_s, service_s = columns(products)
    left, done = service_s.copy(), np.zeros(len(at_s))
    classes = np.floor(np.log2(service_s))
    now_s = 0.0
    while (left > 1e-9).any():
        there = np.flatnonzero((at_s <= now_s + 1e-12) & (left > 1e-9))
        coming = at_s[at_s > now_s + 1e-12]
        next_s = coming.min() if len(coming) else math.inf
        if len(there) == 0:
            now_s = next_s
            continue
        served = there if order is Order.ROUND_ROBIN else there[[np.lexsort((there, classes[there]))[0]]]
        step_s = min(next_s - now_s, left[served].min() * len(served))
        left[served] -= step_s / len(served)
        now_s += step_s
        done[served[left[served] <= 1e-9]] = now_s
    result: Floats = done - at_s
    return result


@pytest.mark.parametrize("order", [Order.ROUND_ROBIN, Order.SHORTEST])
@settings(max_examples=60, deadline=None)
@given(feeds)
def test_each_order_equals_a_clerk_who_goes_step_by_step(order: Order, products: list[tuple[float, float]]) -> None:
    assert sojourns(products, order) == pytest.approx(served_in_steps(products, order), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(feeds)
def test_no_order_makes_the_server_ready_earlier(products: list[tuple[float, float]]) -> None:
    at_s, _ = columns(products)
    ends = [float((at_s + sojourns(products, order)).max()) for order in Order]
    assert ends == pytest.approx([ends[0]] * len(ends))


def test_hand_made_sharing() -> None:
    # Two simultaneous products of two seconds each both take four; a short one that comes in between leaves first.
    assert list(sojourns([(0, 2), (0, 2)], Order.ROUND_ROBIN)) == [4, 4]
    assert list(sojourns([(0, 3), (1, 0.5)], Order.ROUND_ROBIN)) == [3.5, 1.0]
    assert list(sojourns([(0, 3), (1, 0.5)], Order.SHORTEST)) == [3.5, 0.5]
    assert list(sojourns([(0, 3), (1, 0.5)], Order.FIRST_COME)) == [3.0, 2.5]


def test_a_sample_of_the_busy_periods_stands_for_all_of_them() -> None:
    random = np.random.default_rng(11)
    at_s = np.cumsum(np.where(random.random(40_000) < 0.05, random.exponential(2.0, 40_000), 0.01))
    service_s = random.lognormal(np.log(0.01), 1.0, 40_000)
    every, some = (play(at_s, service_s, Order.ROUND_ROBIN, budget=budget) for budget in (10**9, 8_000))
    assert len(some.index) < len(every.index) / 3
    assert some.weight.sum() == pytest.approx(len(at_s), rel=0.02)
    for share in (0.5, 0.9, 0.99):
        quantiles = []
        for played in (every, some):
            seen = LogHistogram()
            seen.add(played.sojourn_s, played.weight)
            quantiles.append(seen.quantile(share))
        assert quantiles[1] == pytest.approx(quantiles[0], rel=0.05)


def test_the_buffer_holds_what_waits_and_the_product_that_comes() -> None:
    sizes = np.array([1e6, 1e6, 1e6])
    wait_s = waits(np.zeros(3), sizes * 8 / 8e6)
    assert backlog_bytes(wait_s, sizes, 8e6) == 3e6
    assert backlog_bytes(np.empty(0), np.empty(0), 8e6) == 0


def test_nothing_takes_no_time() -> None:
    assert len(play(np.empty(0), np.empty(0), Order.FIRST_COME).index) == 0
    assert len(play(np.empty(0), np.empty(0), Order.ROUND_ROBIN).index) == 0
    assert len(play(np.empty(0), np.empty(0), Order.SHORTEST).index) == 0
