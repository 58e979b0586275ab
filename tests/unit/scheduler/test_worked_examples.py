"""The twenty worked examples of the selection model, each by the number and the fact that it proves.

Arithmetic to 1 %, simulation to 5 %. Where an example is both, the closed form and the simulation are both held
against it. Examples 7, 8 and 9, which decide, are in `test_candidates.py`.
"""

import math

import numpy as np
import pytest

from downburst.domain.tcp.rates import CongestionControl
from downburst_analyze.sessions import threshold_bytes
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.rates import PathFacts, relay_choice, split_gain
from downburst_scheduler.models.repair import Repair
from downburst_scheduler.models.sweeps import LossCurve, best_rate_bps, group_seconds
from downburst_scheduler.models.transports import dynamic_circuit, multicast, peak_minute_bps, releases, unicast
from unit.scheduler import closed_forms as formulas
from unit.scheduler.closed_forms import (
    bandwidth_delay_bytes,
    catch_up_s,
    needs_shaping,
    paced_bps,
    short_product_s,
)
from unit.scheduler.feeds import arrivals, ngrid_hour, peaked

ARITHMETIC, SIMULATION = 0.01, 0.05
ONE_125_MB = arrivals((0.0, 125e6))
FIFTY = [PathFacts(access_bps=100e6)] * 50
CONDUIT_DAY, CONDUIT_PEAK_BPS = 60e9, 33.3e6
NEXRAD2_DAY, NEXRAD2_PEAK_BPS = 56e9, 7.8e6
GIGABYTE = LossCurve((600e6, 800e6), (0.0026, 0.1104))


def test_example_01_unicast_of_125_mb_to_50_takes_50_s_for_the_sender_is_the_bottleneck() -> None:
    closed = formulas.unicast_s(125e6, 50, sender_bps=1e9, link_bps=10e9, receiver_bps=100e6)
    assert closed == pytest.approx(50, rel=ARITHMETIC)
    assert unicast(ONE_125_MB, FIFTY, egress_bps=1e9).latencies.quantile_s(0.99) == pytest.approx(50, rel=SIMULATION)
    faster = formulas.unicast_s(125e6, 50, sender_bps=5e9, link_bps=10e9, receiver_bps=100e6)
    assert faster == pytest.approx(10, rel=ARITHMETIC), "the receivers could take 5 Gb/s"


def test_example_02_multicast_takes_10_s_and_is_5_times_faster() -> None:
    closed = formulas.multicast_s(125e6, sender_bps=1e9, link_bps=10e9, receiver_bps=100e6)
    assert closed == pytest.approx(10, rel=ARITHMETIC)
    played = multicast(ONE_125_MB, FIFTY, rate_bps=1e9)
    assert played.latencies.quantile_s(0.99) == pytest.approx(10, rel=SIMULATION)


def test_example_03_five_servers_make_unicast_as_fast_as_the_group() -> None:
    assert formulas.servers_to_match(50, 10) == 5
    played = unicast(ONE_125_MB, FIFTY[:10], egress_bps=1e9)
    assert played.latencies.quantile_s(0.99) == pytest.approx(10, rel=SIMULATION), "10 receivers each"


@pytest.mark.parametrize(
    ("day_bytes", "peak_bps", "receivers", "mean_egress_bps", "peak_egress_bps"),
    [
        pytest.param(CONDUIT_DAY, CONDUIT_PEAK_BPS, 104, 578e6, 3463e6, id="example 04: CONDUIT needs 3.5 Gb/s"),
        pytest.param(NEXRAD2_DAY, NEXRAD2_PEAK_BPS, 55, 285e6, 429e6, id="example 05: NEXRAD2 needs 429 Mb/s"),
    ],
)
def test_examples_04_and_05_egress(
    day_bytes: float, peak_bps: float, receivers: int, mean_egress_bps: float, peak_egress_bps: float
) -> None:
    mean_bps = formulas.day_mean_bps(day_bytes)
    assert formulas.copies_bps(mean_bps, receivers) == pytest.approx(mean_egress_bps, rel=ARITHMETIC)
    assert formulas.copies_bps(peak_bps, receivers) == pytest.approx(peak_egress_bps, rel=ARITHMETIC)
    played = unicast(peaked(mean_bps, peak_bps), [PathFacts()] * receivers, egress_bps=10e9)
    assert played.egress_bps == pytest.approx(mean_egress_bps, rel=SIMULATION)
    assert played.peak_egress_bps == pytest.approx(peak_egress_bps, rel=SIMULATION)


@pytest.mark.parametrize(
    ("day_bytes", "peak_bps", "used"),
    [(CONDUIT_DAY, CONDUIT_PEAK_BPS, 0.167), (NEXRAD2_DAY, NEXRAD2_PEAK_BPS, 0.667)],
    ids=["CONDUIT 16.7 %", "NEXRAD2 67 %"],
)
def test_example_06_how_full_a_circuit_for_the_peak_minute_is(day_bytes: float, peak_bps: float, used: float) -> None:
    mean_bps = formulas.day_mean_bps(day_bytes)
    assert formulas.utilisation(mean_bps, peak_bps) == pytest.approx(used, rel=ARITHMETIC)
    assert mean_bps / peak_minute_bps(peaked(mean_bps, peak_bps)) == pytest.approx(used, rel=SIMULATION)


@pytest.mark.parametrize(
    ("third_quartile_bps", "threshold"),
    [
        pytest.param(681.7e6, 51.1e9, id="example 10: NCAR"),
        pytest.param(191e6, 14.3e9, id="example 11: SLAC"),
    ],
)
def test_examples_10_and_11_least_session_for_a_circuit_of_one_minute(
    third_quartile_bps: float, threshold: float
) -> None:
    assert threshold_bytes(third_quartile_bps, 60) == pytest.approx(threshold, rel=ARITHMETIC)


@pytest.mark.parametrize(
    ("setup_s", "hold_s", "count", "share"),
    [(1, 1, 1005, 0.241), (1, 10, 7, 0.007), (1, 30, 0, 0.0), (60, 1, 0, 0.0), (60, 60, 0, 0.0)],
)
def test_example_12_what_dynamic_circuits_give_back(setup_s: float, hold_s: float, count: int, share: float) -> None:
    found = releases(ngrid_hour(), setup_s=setup_s, hold_s=hold_s)
    assert found.releases == count
    assert found.share_of_time == pytest.approx(share, abs=0.0005)


def test_example_12_the_first_product_of_each_session_pays_the_setup() -> None:
    recorded = ngrid_hour()
    played = dynamic_circuit(recorded, [PathFacts()], rate_bps=1e9, setup_s=1, hold_s=10)
    assert played.setups == 7, "one at the start; of the seven gaps one is over 10 s by less than products take"
    assert played.reserved_bps / 1e9 == pytest.approx(1 - 0.007, rel=ARITHMETIC)


@pytest.mark.parametrize(("receivers", "best"), [(1, 800e6), (3, 800e6), (4, 600e6), (7, 600e6)])
def test_example_13_rate_choice_with_unicast_repair_turns_between_3_and_4(receivers: int, best: float) -> None:
    assert best_rate_bps(1e9, receivers, GIGABYTE, repair_bps=900e6, repair=Repair.UNICAST) == best


@pytest.mark.parametrize("receivers", [1, 3, 4, 7, 50, 570])
def test_example_13_with_coded_repair_800_wins_at_every_number(receivers: int) -> None:
    assert best_rate_bps(1e9, receivers, GIGABYTE, repair_bps=900e6, repair=Repair.CODED) == 800e6


@pytest.mark.parametrize(
    ("rate_bps", "receivers", "seconds"), [(600e6, 1, 13.36), (800e6, 1, 10.98), (600e6, 7, 13.50), (800e6, 7, 16.87)]
)
def test_example_13_simulation_and_closed_form_agree(rate_bps: float, receivers: int, seconds: float) -> None:
    loss = GIGABYTE.at(rate_bps)
    closed = group_seconds(1e9, receivers, rate_bps=rate_bps, loss=loss, repair_bps=900e6, repair=Repair.UNICAST)
    assert closed == pytest.approx(seconds, rel=ARITHMETIC)
    sites = [PathFacts(loss=loss)] * receivers
    played = multicast(
        arrivals((0.0, 1e9)), sites, rate_bps=rate_bps, repair=Repair.UNICAST, repair_bps=900e6 * (1 - loss) ** -1
    )
    assert played.latencies.quantile_s(0.5) == pytest.approx(seconds, rel=SIMULATION)


def test_example_14_a_buffer_of_3_percent_must_be_shaped() -> None:
    product = bandwidth_delay_bytes(1e9, 0.0367)
    assert product == pytest.approx(4.59e6, rel=ARITHMETIC)
    assert 128 * 1024 / product == pytest.approx(0.0285, rel=ARITHMETIC)
    assert needs_shaping(128 * 1024, 1e9, 0.0367)
    assert not needs_shaping(5e6, 1e9, 0.0367)


def test_example_15_pace_and_catching_up() -> None:
    assert paced_bps(1448, 22e-6) == pytest.approx(526.5e6, rel=ARITHMETIC)
    assert catch_up_s(1.2e6, 620e6, 525e6) == pytest.approx(0.101, rel=ARITHMETIC)


def test_example_16_a_relay_is_chosen_where_its_slowest_segment_beats_the_direct_path() -> None:
    choice = relay_choice(380e6, [900e6, 5100e6, 900e6])
    assert choice.bound_bps == 900e6
    assert choice.expected_bps == pytest.approx(762e6, rel=ARITHMETIC)
    assert choice.relay


def test_example_17_half_the_round_trip_and_half_the_loss_is_2_83_times_for_reno() -> None:
    whole = PathFacts(0.07, 0.001, congestion=CongestionControl.RENO)
    half = PathFacts(0.035, 0.0005, congestion=CongestionControl.RENO)
    assert split_gain(whole, [half, half]) == pytest.approx(2 * math.sqrt(2), rel=ARITHMETIC)


def test_example_18_peers_have_nothing_to_give_of_a_fresh_product_of_one_origin() -> None:
    assert not formulas.peers_help(origins=1, fresh=True)
    assert formulas.peers_help(origins=1, fresh=False), "what was lost may be had from anybody"


def test_example_19_a_group_of_24_sends_16_4_times_less() -> None:
    assert formulas.saving(350, 21.4) == pytest.approx(16.4, rel=ARITHMETIC)


def test_example_20_each_byte_leaves_47_times_and_groups_could_save_97_9_percent() -> None:
    hour = formulas.amplification(50e9, 2.34e12)
    assert hour.factor == pytest.approx(46.8, rel=ARITHMETIC)
    assert hour.saving_bound == pytest.approx(0.979, rel=0.001)


def test_short_products_take_round_trips() -> None:
    assert short_product_s(124_000, 1e12, 0.07, connected=True) == pytest.approx(0.28, rel=ARITHMETIC)
    assert short_product_s(124_000, 1e12, 0.07, connected=True, first_window_bytes=144_800) == pytest.approx(
        0.07, rel=ARITHMETIC
    )
    alone = Arrivals(np.array([0.0]), np.array([124_000.0]), 1.0)
    played = unicast(alone, [PathFacts(0.07)], egress_bps=1e12)
    assert played.latencies.quantile_s(0.5) == pytest.approx(0.28 - 0.035, rel=SIMULATION), (
        "the last byte is there half a round trip before its acknowledgement is back"
    )


def test_poisson_formulas_are_only_a_lower_bound() -> None:
    """At a load of one half the recorded hour waits several times as long as Pollaczek and Khinchine say."""
    recorded = ngrid_hour()
    service_s = recorded.size_bytes * 8 / (recorded.mean_bps * 2)
    variation = float((service_s.std() / service_s.mean()) ** 2)
    poisson_s = formulas.mean_wait_of_poisson_s(0.5, float(service_s.mean()), variation)
    played = multicast(recorded, [PathFacts()], rate_bps=recorded.mean_bps * 2)
    assert played.latencies.together.mean - service_s.mean() > 2.5 * poisson_s
