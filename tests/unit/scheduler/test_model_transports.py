"""Transports: fair rates against a hub that shares anew at every moment, circuits with setups, groups, relays."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst.domain.tcp.rates import CongestionControl, cubic_bps, reno_bps
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.rates import PathFacts, connection_bps
from downburst_scheduler.models.repair import Repair, expected_symbols, repair_share
from downburst_scheduler.models.transports import (
    dynamic_circuit,
    fair_rates_bps,
    multicast,
    relayed,
    session_starts,
    static_circuit,
    unicast,
)
from unit.scheduler.closed_forms import erlang_b
from unit.scheduler.feeds import arrivals, ngrid_hour, steady


@pytest.mark.parametrize("repair", list(Repair))
def test_a_group_that_loses_all_is_repaired_about_as_much_as_one_that_loses_half(repair: Repair) -> None:
    sizes = np.array([1e3, 1e6])
    assert list(repair_share(sizes, [1.0], repair)) == list(repair_share(sizes, [0.5], repair))


def shared_anew(products: list[tuple[float, float]], caps_bps: list[float], egress_bps: float) -> list[float]:
    """The last completion at each site if the egress is divided max-min among the sites with a backlog."""
    backlogs, done, now_s = [0.0] * len(caps_bps), [0.0] * len(caps_bps), 0.0
    events = [*sorted(products), (math.inf, 0.0)]
    for at_s, size in events:
        while any(backlog > 1e-3 for backlog in backlogs):
            busy = [site for site, backlog in enumerate(backlogs) if backlog > 1e-3]
            rates = fair_rates_bps([PathFacts(access_bps=caps_bps[site]) for site in busy], egress_bps)
            step_s = min(backlogs[site] / rate for site, rate in zip(busy, rates, strict=True))
            step_s = min(step_s, at_s - now_s)
            for site, rate in zip(busy, rates, strict=True):
                backlogs[site] -= rate * step_s
                if backlogs[site] <= 1e-3:
                    done[site] = now_s + step_s
            now_s += step_s
            if now_s >= at_s:
                break
        now_s = at_s
        backlogs = [backlog + size * 8 for backlog in backlogs]
    return done


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 20), st.floats(1e4, 5e6)), min_size=1, max_size=12),
    st.lists(st.floats(2e5, 1e8), min_size=1, max_size=6),
    st.floats(1e6, 1e8),
)
def test_fixed_fair_rates_equal_sharing_anew_at_every_moment(
    products: list[tuple[float, float]], caps_bps: list[float], egress_bps: float
) -> None:
    reference_s = shared_anew(products, caps_bps, egress_bps)
    rates = fair_rates_bps([PathFacts(access_bps=cap) for cap in caps_bps], egress_bps)
    for rate_bps, expected_s in zip(rates, reference_s, strict=True):
        free_s = 0.0
        for at_s, size in sorted(products):
            free_s = max(free_s, at_s) + size * 8 / rate_bps
        assert free_s == pytest.approx(expected_s, rel=1e-4, abs=1e-3)


def test_short_products_leave_first_where_the_shortest_is_served_first() -> None:
    recorded = ngrid_hour()
    medians = [
        unicast(recorded, [PathFacts()] * 20, egress_bps=1e9, order=order).latencies.quantile_s(0.5)
        for order in (Order.SHORTEST, Order.ROUND_ROBIN, Order.FIRST_COME)
    ]
    assert medians[0] < 0.6 * min(medians[1:])


def test_many_rates_are_taken_in_steps_and_lose_no_more_than_they() -> None:
    sites = [PathFacts(access_bps=2e7 + 1e6 * number) for number in range(40)]
    many = unicast(steady(), sites, egress_bps=1e10)
    exact = [unicast(steady(), [site], egress_bps=1e10).latencies.quantile_s(0.5) for site in sites]
    assert many.latencies.quantile_s(1.0) == pytest.approx(max(exact), rel=0.06)
    assert many.latencies.worst_site_s(0.5) == pytest.approx(max(exact), rel=0.06)


def test_a_static_circuit_is_the_backlog_recursion() -> None:
    played = static_circuit(arrivals((0, 1e6), (0, 1e6), (0.5, 1e6), span_s=10), [PathFacts(0.1)] * 2, rate_bps=8e6)
    assert played.latencies.quantile_s(1.0) == pytest.approx(2.5 + 0.05)
    assert played.latencies.quantile_s(0.1) == pytest.approx(1.05)
    assert played.reserved_bps == 16e6
    assert played.utilisation == pytest.approx(3e6 * 8 / 10 / 8e6)
    assert played.buffer_bytes == pytest.approx(2.5e6)


def test_a_dynamic_circuit_pays_at_each_session_and_frees_the_rest() -> None:
    feed = arrivals((0, 1e6), (3, 1e6), (50, 1e6), span_s=100)
    played = dynamic_circuit(feed, [PathFacts()], rate_bps=8e6, setup_s=2, hold_s=5)
    assert played.setups == 2
    # Products are done at 3, 4 and 53 s; the circuit is up from 2 to 9 s and from 52 to 58 s.
    assert played.reserved_bps == pytest.approx(8e6 * (7 + 6) / 100)
    assert played.latencies.quantile_s(1.0) == pytest.approx(3.0)
    assert played.latencies.quantile_s(0.3) == pytest.approx(1.0)


def test_a_hold_is_never_shorter_than_the_setup() -> None:
    feed = arrivals((0, 1e6), (30, 1e6), span_s=60)
    assert dynamic_circuit(feed, [PathFacts()], rate_bps=8e6, setup_s=60, hold_s=0).setups == 1


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 200), st.floats(0.01, 5)), min_size=1, max_size=30),
    st.floats(0, 10),
    st.floats(0.1, 20),
)
def test_sessions_equal_those_of_a_clerk_who_asks_for_circuits(
    products: list[tuple[float, float]], setup_s: float, hold_s: float
) -> None:
    ordered = sorted(products)
    starts, free_s = [0], ordered[0][0] + setup_s
    for number, (at_s, service_s) in enumerate(ordered):
        if number and at_s - free_s > hold_s + 1e-9:
            starts.append(number)
            free_s = at_s + setup_s
        free_s = max(free_s, at_s) + service_s
    at, service = np.array([at for at, _ in ordered]), np.array([service for _, service in ordered])
    assert session_starts(at, service, setup_s=setup_s, hold_s=hold_s).tolist() == starts


def test_calls_that_find_no_circuit_are_those_of_erlang() -> None:
    """The share of Poisson calls that find all circuits taken equals the closed form within two points."""
    random = np.random.default_rng(3)
    at_s, length_s = np.cumsum(random.exponential(1.0, 20_000)), random.exponential(8.0, 20_000)
    ends: list[float] = []
    blocked = 0
    for moment, length in zip(at_s.tolist(), length_s.tolist(), strict=True):
        ends = [end for end in ends if end > moment]
        if len(ends) == 10:
            blocked += 1
        else:
            ends.append(moment + length)
    assert blocked / len(at_s) == pytest.approx(erlang_b(8.0, 10), abs=0.02)


def test_unicast_repair_grows_with_the_group_and_coded_repair_hardly() -> None:
    large = np.array([50e6])
    shares = {
        (repair, receivers): float(repair_share(large, [0.01] * receivers, repair)[0])
        for repair in Repair
        for receivers in (1, 7, 100)
    }
    assert shares[Repair.UNICAST, 100] == pytest.approx(100 * shares[Repair.UNICAST, 1])
    assert shares[Repair.CODED, 100] < 1.3 * shares[Repair.CODED, 1]
    assert shares[Repair.CODED, 7] < shares[Repair.UNICAST, 7] / 5


@pytest.mark.parametrize(("blocks", "losses"), [(1, (0.1,) * 5), (40, (0.02, 0.05, 0.3)), (1000, (0.01,) * 20)])
def test_expected_symbols_are_the_mean_of_the_most_that_anybody_lost(blocks: int, losses: tuple[float, ...]) -> None:
    random = np.random.default_rng(7)
    drawn = np.max([random.binomial(blocks, loss, 20_000) for loss in losses], axis=0)
    assert expected_symbols(blocks, losses) * (1 - max(losses)) == pytest.approx(drawn.mean(), rel=0.03)


def test_loss_delays_those_who_lost_and_costs_the_hub() -> None:
    sites = [PathFacts(0.1, 0.01), PathFacts(0.1)]
    played = multicast(steady(), sites, rate_bps=1e8)
    lossy, clean = (site.quantile(0.9) for site in played.latencies.sites)
    assert lossy > clean + 0.1
    assert played.egress_bps > steady().mean_bps * 1.01


def test_a_relay_hands_on_what_it_has_begun_to_get() -> None:
    one = arrivals((0.0, 1e6))
    halves = [PathFacts(0.04, access_bps=8e6), PathFacts(0.06, access_bps=8e6)]
    played = relayed(one, [halves], egress_bps=1e9, residence_s=0.01)
    assert played.latencies.quantile_s(0.5) == pytest.approx(1.0 + 0.02 + 0.03 + 0.01)
    slow_end = [PathFacts(access_bps=8e6), PathFacts(access_bps=4e6)]
    assert relayed(one, [slow_end], egress_bps=1e9, residence_s=0).latencies.quantile_s(0.5) == pytest.approx(2.0)


def test_rates_of_connections() -> None:
    assert reno_bps(0.07, 0.001) == pytest.approx(6.38e6, rel=0.01)
    assert cubic_bps(0.01, 0.01) == reno_bps(0.01, 0.01), "never less than Reno"
    assert cubic_bps(0.2, 1e-5) > 2 * reno_bps(0.2, 1e-5), "on long clean paths much more"
    window = PathFacts(0.08, window_bytes=64_000, access_bps=1e8)
    assert connection_bps(window) == pytest.approx(6.4e6)
    assert connection_bps(PathFacts(0.07, 0.005, 1e8, congestion=CongestionControl.BBR)) == pytest.approx(99.5e6)
    eight = PathFacts(0.07, 0.001, 1e9, congestion=CongestionControl.RENO, connections=8)
    assert connection_bps(eight) == pytest.approx(8 * reno_bps(0.07, 0.001))
