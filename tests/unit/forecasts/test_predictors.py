"""Each predictor alone: its forecast of a constant, a step, an outlier, an alternation and of sizes."""

import math
import random
from collections.abc import Iterable

import pytest

from downburst.forecasts import predictors
from downburst.forecasts.fused import WINDOW, Fused
from downburst.forecasts.predictors import PREDICTORS, Sample


def window(*rates_bps: float) -> list[Sample]:
    return [Sample(rate_bps) for rate_bps in rates_bps]


def sized(pairs: Iterable[tuple[float, float]]) -> list[Sample]:
    return [Sample(rate_bps, size_bytes) for size_bytes, rate_bps in pairs]


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_constant_rate_is_predicted_whatever_the_size(name: str) -> None:
    for size_bytes in (None, 5e4):
        assert PREDICTORS[name](window(*[8e6] * 32), size_bytes) == pytest.approx(8e6)
        assert PREDICTORS[name](window(8e6), size_bytes) == 8e6


def test_the_mean_takes_the_newest_twenty() -> None:
    assert predictors.mean(window(*[100.0] * 12, *[1.0] * 10, *[3.0] * 10)) == pytest.approx(2)


def test_an_outlier_moves_the_mean_and_not_the_median() -> None:
    rates = window(*[5.0] * 10, 500.0)
    assert predictors.median(rates) == 5
    assert predictors.mean(rates) == pytest.approx(50)


def test_the_exponential_mean_goes_three_tenths_of_the_way_at_each_sample() -> None:
    assert predictors.ewma(window(10.0, 20.0)) == pytest.approx(13)
    assert predictors.ewma(window(10.0, 20.0, 20.0)) == pytest.approx(15.1)


def test_the_regression_finds_an_alternation_that_a_mean_does_not() -> None:
    rates = window(*[10e6, 30e6] * 10)
    assert predictors.autoregression(rates) == pytest.approx(10e6, rel=0.02)
    assert predictors.mean(rates) == pytest.approx(20e6)


def test_the_regression_never_leaves_the_rates_of_the_window() -> None:
    rising = window(*[1e6 * 1.5**step for step in range(20)])
    assert predictors.autoregression(rising) == rising[-1].rate_bps


def test_few_samples_are_not_fitted() -> None:
    rates = window(*[10e6, 30e6] * 5)
    assert predictors.autoregression(rates) == predictors.ewma(rates)


def test_the_transfers_nearest_in_size_count_by_ratio_and_of_equal_ones_the_newest() -> None:
    past = sized([(1e3, 1e5), (1e3, 2e5), (1e3, 3e5), (1e3, 4e5), (1e6, 9e6), (1.1e6, 10e6), (0.9e6, 11e6)])
    assert predictors.nearest(past, 1e6) == pytest.approx(10e6)
    assert predictors.nearest(past, 900.0) == pytest.approx(3e5), "not the first of four equal ones"
    by_ratio = sized([(1e4, 1.0), (1e4, 1.0), (1e4, 1.0), (1e6, 9.0), (1e6, 9.0), (1e6, 9.0)])
    assert predictors.nearest(by_ratio, 2e5) == 9, "a fifth of 1 MB is nearer than twenty times 10 kB"


def test_without_sizes_the_newest_rates_are_the_nearest() -> None:
    assert predictors.nearest(window(1.0, 2.0, 3.0, 4.0), None) == pytest.approx(3)
    assert predictors.nearest(window(1.0, 2.0, 3.0, 4.0), 1e6) == pytest.approx(3)
    assert predictors.nearest(sized([(1e3, 1.0), (1e6, 5.0)]), None) == pytest.approx(3)


def told(*rates_bps: float) -> Fused:
    fused = Fused()
    for rate_bps in rates_bps:
        assert fused.add(Sample(rate_bps))
    return fused


def rate_of(fused: Fused) -> float:
    found = fused.forecast()
    assert found is not None
    return found.rate_bps


def test_the_second_sample_after_a_switch_drops_those_before_it() -> None:
    steady = [20e6, 20.5e6] * 8
    assert rate_of(told(*steady, 5e6)) > 6e6
    fused = told(*steady, 5e6, 5e6)
    assert len(fused) == 2
    assert rate_of(fused) == pytest.approx(5e6)


def test_an_outlier_drops_nothing_nor_do_two_on_both_sides() -> None:
    steady = [20e6, 20.5e6] * 8
    assert len(told(*steady, 5e6, 20e6, 5e6, 20e6)) == 20
    assert len(told(*steady, 5e6, 60e6)) == 18


def test_small_changes_and_transfers_of_known_sizes_drop_nothing() -> None:
    assert len(told(*[20e6] * 16, 17e6, 17e6)) == 18, "exact before, and off by less than three tenths"
    sized_rates = Fused()
    for rate_bps in (*[20e6] * 16, 5e6, 5e6):
        sized_rates.add(Sample(rate_bps, 1e5))
    assert len(sized_rates) == 18


def test_the_weight_goes_to_the_predictor_with_the_least_recent_error() -> None:
    fused = told(*[10e6, 30e6] * 12)
    found = fused.forecast()
    assert found is not None
    assert found.best == "autoregression"
    assert found.rate_bps == pytest.approx(10e6, rel=0.05)


@pytest.mark.parametrize("rate_bps", [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e16])
def test_rates_that_no_path_has_are_refused(rate_bps: float) -> None:
    fused = Fused()
    assert not fused.add(Sample(rate_bps))
    assert fused.forecast() is None


@pytest.mark.parametrize("size_bytes", [math.nan, math.inf, -5.0, 0.0])
def test_sizes_that_no_transfer_has_are_refused(size_bytes: float) -> None:
    assert not Fused().add(Sample(1e6, size_bytes))


def test_hostile_samples_change_nothing_and_forecasts_stay_within_the_rates_of_the_window() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    extremes = [math.nan, math.inf, -math.inf, -1.0, 0.0, 5e-324, 1.0, 1e15, 1.7e308]
    for _ in range(30):
        fused, clean, taken = Fused(), Fused(), []
        for _ in range(120):
            rate_bps = chance.choice([chance.choice(extremes), chance.lognormvariate(15, 4), 8e6])
            size_bytes = chance.choice([None, None, chance.choice(extremes), chance.lognormvariate(11, 3)])
            sample = Sample(rate_bps, size_bytes)
            if fused.add(sample):
                assert clean.add(sample)
                taken.append(sample.rate_bps)
            found = fused.forecast(chance.choice([None, chance.lognormvariate(11, 3)]))
            if taken:
                recent = taken[-WINDOW:]
                assert found is not None
                assert min(recent) * (1 - 1e-9) <= found.rate_bps <= max(recent) * (1 + 1e-9)
                assert math.isfinite(found.error_bps)
                assert 1 <= found.samples <= len(recent)
                assert found.best in PREDICTORS
        assert fused.forecast(5e4) == clean.forecast(5e4), "the same samples make the same forecast"
