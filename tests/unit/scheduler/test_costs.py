"""Costs of services in one unit: worked examples, and the boundaries of lateness."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst_scheduler.models.costs import Service, costs_bps, lateness


def test_a_missed_objective_costs_the_dearest_price_if_another_service_meets_it() -> None:
    services = [Service(2e6, 9.0), Service(5e6, 4.0), Service(1e6, 3.0, is_possible=False)]
    assert costs_bps(services, 5.0) == [7e6, 5e6, 6e6]


def test_a_delay_costs_its_share_if_none_meets_the_objective() -> None:
    services = [Service(2e6, 15.0), Service(6e6, 10.0), Service(1e6, 40.0)]
    assert costs_bps(services, 5.0) == [5e6, 6e6, 7e6]


@pytest.mark.parametrize(("late_s", "share"), [(0.0, 0.0), (10.0, 0.0), (12.0, 0.2), (20.0, 1.0), (1e9, 1.0)])
def test_twice_as_late_as_the_soonest_is_the_worst(late_s: float, share: float) -> None:
    assert lateness(late_s, 10.0, 10.0) == pytest.approx(share)


def test_no_services_cost_nothing_and_a_latency_of_zero_divides_nothing() -> None:
    assert costs_bps([], 5.0) == []
    assert costs_bps([Service(1.0, 0.0), Service(1.0, 1.0, is_possible=False)], 0.0) == [1.0, 2.0]
    assert lateness(1.0, 0.5, 0.0) == 1.0
    assert lateness(5e-324, 0.0, 0.0) == 0.0


@given(
    st.lists(st.builds(Service, st.floats(0, 1e12), st.floats(0, 1e6), st.booleans()), max_size=5), st.floats(0, 1e4)
)
def test_a_cost_is_at_least_the_price_and_at_most_the_dearest_more(some: list[Service], limit_s: float) -> None:
    dearest_bps = max((one.price_bps for one in some), default=0.0)
    for one, cost_bps in zip(some, costs_bps(some, limit_s), strict=True):
        assert math.isfinite(cost_bps)
        assert one.price_bps <= cost_bps <= one.price_bps + dearest_bps
