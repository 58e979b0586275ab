"""Worked examples of the selection model, each by the number and the fact that it proves, in closed form and played.

Arithmetic to 1 %, simulation to 5 %. All twenty are rows of `make bench-seeds`, whose models
`tests/unit/bench/test_seeds.py` holds against them. Examples 7, 8 and 9, which decide, are in `test_candidates.py`.
"""

import numpy as np
import pytest

from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.repair import Repair
from downburst_scheduler.models.sweeps import LossCurve, best_rate_bps, group_seconds
from downburst_scheduler.models.transports import dynamic_circuit, multicast, peak_minute_bps, releases, unicast
from unit.scheduler import closed_forms as formulas
from unit.scheduler.closed_forms import (
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
    assert mean_bps * receivers == pytest.approx(mean_egress_bps, rel=ARITHMETIC)
    assert peak_bps * receivers == pytest.approx(peak_egress_bps, rel=ARITHMETIC)
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
    assert mean_bps / peak_bps == pytest.approx(used, rel=ARITHMETIC)
    assert mean_bps / peak_minute_bps(peaked(mean_bps, peak_bps)) == pytest.approx(used, rel=SIMULATION)


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
