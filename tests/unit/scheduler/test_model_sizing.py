"""Circuits: the least rate, the rate for the published hour, the interval, and the next window."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.sizing import Objective, between, least_rate, size_at, study
from unit.scheduler.feeds import arrivals, ngrid_hour, steady

feeds = st.lists(st.tuples(st.floats(0, 100), st.floats(1e3, 1e7)), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(feeds, st.floats(0.5, 1.0), st.floats(0.05, 20))
def test_the_rate_keeps_the_objective_and_a_little_less_does_not(
    products: list[tuple[float, float]], share: float, latency_s: float
) -> None:
    feed = arrivals(*sorted(products))
    objective = Objective(share, latency_s)
    found = least_rate(feed, objective)
    assert found is not None
    assert found.sojourn_s <= latency_s * (1 + 1e-9)
    if found.utilisation < 1000:
        assert size_at(feed, found.rate_bps * 0.995, objective).sojourn_s > latency_s


def test_one_product_needs_its_size_over_its_time() -> None:
    found = least_rate(arrivals((0, 1e6), span_s=10), Objective(0.99, 4.0), away_s=2.0)
    assert found is not None
    assert found.rate_bps == pytest.approx(4e6, rel=0.002)
    assert found.buffer_bytes == 1e6


def test_no_rate_makes_the_way_shorter() -> None:
    assert least_rate(steady(), Objective(0.99, 0.1), away_s=0.1) is None
    assert study(steady(), Objective(0.99, 0.1), away_s=0.1) is None


@pytest.mark.parametrize(("utilised", "p99_s"), [(0.2, 1.0), (0.33, 5.0), (0.5, 12.0)])
def test_the_knee_of_the_recorded_hour(utilised: float, p99_s: float) -> None:
    """Waits are seconds at three times the mean rate, and tens of seconds at twice the mean rate."""
    recorded = ngrid_hour()
    found = size_at(recorded, recorded.mean_bps / utilised, Objective(0.99))
    assert p99_s / 2 < found.sojourn_s < p99_s * 2


def test_the_interval_holds_the_rate_and_the_next_half_is_tried() -> None:
    found = study(ngrid_hour(), Objective(0.99, 5.0))
    assert found is not None
    assert found.low_bps < found.size.rate_bps < found.high_bps * 1.05
    assert found.high_bps / found.low_bps > 1.1, "an hour of bursts is no sure ground"
    assert 0.5 < found.validated_share <= 1


def test_a_steady_feed_is_sure() -> None:
    found = study(steady(products=4_000), Objective(0.99, 1.0))
    assert found is not None
    assert found.high_bps / found.low_bps < 1.1
    assert found.validated_share == 1


def test_windows_are_cut_by_time() -> None:
    feed = Arrivals(np.array([0.0, 1.0, 5.0]), np.array([1.0, 2.0, 3.0]), 6.0)
    part = between(feed, 1.0, 5.0)
    assert (part.at_s.tolist(), part.size_bytes.tolist(), part.span_s) == ([0.0], [2.0], 4.0)
