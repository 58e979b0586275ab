"""The queue models: hand-made cases and a slow reference simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst_scheduler.queueing import (
    Overhead,
    Path,
    fair_rates_bps,
    multicast,
    together,
    unicast,
)
from downburst_scheduler.traffic import Arrivals
from unit.scheduler.feeds import arrivals, ngrid_hour, steady

BARE = Overhead(0.0, 0.0)


def test_short_products_pay_round_trips_after_idleness() -> None:
    near, far = (unicast(arrivals((0.0, 124_000)), [Path(trip_s)], egress_bps=1e9) for trip_s in (0.0, 0.07))
    assert far.p50_ms - near.p50_ms == pytest.approx(3.5 * 70), (
        "three turns to open the window and half a one to arrive"
    )


def test_products_behind_a_backlog_pay_no_slow_start() -> None:
    crowd = arrivals((0.0, 10e6), *[(0.01, 124_000)] * 200)
    near, far = (unicast(crowd, [Path(trip_s)], egress_bps=1e9) for trip_s in (0.0, 0.07))
    assert far.p50_ms - near.p50_ms == pytest.approx(35, abs=1), (
        "the first product, which pays, shifts the median by one"
    )


def test_a_backlog_delays_what_comes_behind_it() -> None:
    # 8 Mb each at 8 Mb/s: one second each, three at once.
    played = multicast(arrivals((0.0, 1e6), (0.0, 1e6), (0.0, 1e6)), [Path()], rate_bps=8e6, overhead=BARE)
    assert [played.p50_ms, played.max_ms] == pytest.approx([2_000, 3_000])


def test_repair_delays_some_products_and_costs_its_share() -> None:
    clean = multicast(steady(), [Path(0.1)] * 3, rate_bps=1e8, overhead=BARE)
    lossy = multicast(steady(), [Path(0.1)] * 3, rate_bps=1e8, repair_share=0.001, overhead=BARE)
    assert lossy.egress_bps == pytest.approx(clean.egress_bps * 1.001)
    assert lossy.p50_ms == pytest.approx(clean.p50_ms, rel=0.01), "most products of 72 blocks lose none"
    assert lossy.p99_ms >= clean.p99_ms + 100, "those that do wait for a round trip"


def test_a_slow_site_does_not_slow_the_others_by_unicast_but_does_in_a_group() -> None:
    mixed = [Path(access_bps=1e6), *[Path()] * 9]
    copies = unicast(arrivals((0.0, 1e6)), mixed, egress_bps=1e9, overhead=BARE)
    assert copies.p50_ms == pytest.approx(8e6 * 9 / (1e9 - 1e6) * 1e3)
    assert copies.max_ms == pytest.approx(8_000)
    group = multicast(arrivals((0.0, 1e6)), mixed, rate_bps=4e8, overhead=BARE)
    assert group.p50_ms == pytest.approx(8_000)


def test_a_site_that_takes_a_tenth_costs_a_tenth() -> None:
    whole = unicast(steady(), [Path()], egress_bps=1e9, overhead=BARE)
    part = unicast(steady(), [Path(share=0.1)], egress_bps=1e9, overhead=BARE)
    assert part.egress_bps == pytest.approx(whole.egress_bps / 10)


def test_latency_by_unicast_grows_with_the_sites_and_in_a_group_it_does_not() -> None:
    recorded = ngrid_hour()
    few, many = (unicast(recorded, [Path()] * sites, egress_bps=1e9) for sites in (4, 16))
    assert many.p99_ms > 4 * few.p99_ms
    one, hundred = (multicast(recorded, [Path()] * sites, rate_bps=4e8) for sites in (2, 100))
    assert (one.p99_ms, one.egress_bps) == pytest.approx((hundred.p99_ms, hundred.egress_bps))


def test_far_sites_in_great_number_are_told_apart_to_a_tenth() -> None:
    paths = [Path(0.001 * (1 + number)) for number in range(100)]
    exact = max(path.round_trip_s for path in paths) / 2 + 8e5 / 4e8
    assert multicast(steady(), paths, rate_bps=4e8, overhead=BARE).max_ms == pytest.approx(exact * 1e3, rel=0.06)


def test_two_legs_add_up_and_the_slower_one_sets_the_tail() -> None:
    fast = multicast(steady(), [Path()] * 8, rate_bps=4e8)
    slow = unicast(steady(), [Path(access_bps=4e6)] * 2, egress_bps=1e9)
    both = together(fast, 8, slow, 2)
    assert both.egress_bps == fast.egress_bps + slow.egress_bps
    assert (both.p50_ms, both.p99_ms) == (fast.p50_ms, slow.p99_ms)
    assert together(fast, 8, slow, 0) == fast


paths_strategy = st.lists(
    st.builds(
        Path,
        round_trip_s=st.floats(0, 0.5),
        access_bps=st.none() | st.floats(1e5, 1e9),
        share=st.floats(0.05, 1),
    ),
    min_size=1,
    max_size=12,
)


@given(paths_strategy, st.floats(1e5, 1e10))
def test_fair_rates_waste_nothing_and_exceed_nothing(paths: list[Path], egress_bps: float) -> None:
    rates = fair_rates_bps(paths, egress_bps)
    assert sum(rates) <= egress_bps * (1 + 1e-9)
    assert all(rate <= (path.access_bps or math.inf) * (1 + 1e-9) for rate, path in zip(rates, paths, strict=True))
    free = [
        rate / path.share for rate, path in zip(rates, paths, strict=True) if rate < (path.access_bps or math.inf)
    ]
    if free:
        assert sum(rates) == pytest.approx(egress_bps)
        assert max(free) == pytest.approx(min(free)), "those with room left share alike"


feed_strategy = st.lists(st.tuples(st.floats(0, 20), st.floats(1, 5e6)), min_size=1, max_size=40)


@settings(max_examples=60)
@given(feed_strategy, st.floats(1e5, 1e8), st.integers(1, 6))
def test_the_vectorised_queue_equals_a_clerk_who_serves_one_after_the_other(
    products: list[tuple[float, float]], egress_bps: float, sites: int
) -> None:
    played = arrivals(*sorted(products))
    free_s, latencies_s = 0.0, []
    for at_s, size in sorted(products):
        free_s = max(free_s, at_s) + size * 8 * sites / egress_bps
        latencies_s.append(free_s - at_s)
    found = unicast(played, [Path()] * sites, egress_bps=egress_bps, overhead=BARE)
    assert found.max_ms == pytest.approx(max(latencies_s) * 1e3, rel=1e-6)
    median = sorted(latencies_s)[math.ceil(len(latencies_s) / 2) - 1]
    assert found.p50_ms == pytest.approx(median * 1e3, rel=1e-6)


def test_a_live_window_predicts_nearly_what_exact_times_predict() -> None:
    recorded = ngrid_hour()
    second = recorded.at_s.astype(np.int64)
    counts = np.bincount(second)
    spread = np.concatenate([bin_ + np.arange(count) / max(count, 1) for bin_, count in enumerate(counts)])
    binned = Arrivals(spread, recorded.size_bytes, recorded.span_s)
    for sites in (1, 8):
        exact, live = (unicast(one, [Path(0.02)] * sites, egress_bps=1e9) for one in (recorded, binned))
        assert live.p50_ms == pytest.approx(exact.p50_ms, rel=0.35)
        assert live.p99_ms == pytest.approx(exact.p99_ms, rel=0.35)
