"""The fused forecast on recorded rates of real TCP connections whose path changes (`python -m kit.path_rates`)."""

from statistics import quantiles

import pytest

from downburst.forecasts.predictors import PREDICTORS
from kit.judged_forecasts import FUSED, RECORDINGS, best_of, judged, mean_error_bps


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_fused_error_is_at_most_a_twentieth_above_the_best_predictor_of_the_recording(name: str) -> None:
    errors = judged(name)
    best = best_of(errors)
    assert mean_error_bps(errors, FUSED) <= 1.05 * mean_error_bps(errors, best), best


@pytest.mark.parametrize("name", RECORDINGS)
def test_within_ten_samples_of_a_switch_the_fused_error_is_in_the_range_of_the_best(name: str) -> None:
    """The range: nine tenths of the errors of the recording's best predictor, from the tenth sample of the regime on.

    The fused error is back once the mean of five is within it: one good sample may be luck.
    """
    errors = judged(name)
    best = best_of(errors)
    starts = [at for at in range(1, len(errors)) if errors[at].regime != errors[at - 1].regime]
    assert len(starts) >= 2
    for start, end in zip(starts, [*starts[1:], len(errors)], strict=True):
        regime = errors[start:end]
        in_range_bps = quantiles((one.errors_bps[best] for one in regime[10:]), n=10)[-1]
        back = next(at for at in range(len(regime)) if mean_error_bps(regime[at : at + 5], FUSED) <= in_range_bps)
        assert back <= 10, f"{regime[0].regime}: {back} samples"


def test_no_single_predictor_is_the_best_of_every_regime() -> None:
    best = set()
    for name in RECORDINGS:
        errors = judged(name)
        for regime in {one.regime for one in errors}:
            best.add(best_of([one for one in errors if one.regime == regime]))
    assert len(best) >= 3, best


def test_sizes_help_where_there_are_transfers() -> None:
    errors = judged("transfers")
    assert best_of(errors) == "nearest"
    single = [one for one in PREDICTORS if one != "nearest"]
    fused_bps = mean_error_bps(errors, FUSED)
    assert all(mean_error_bps(errors, one) > 1.5 * fused_bps for one in single)
