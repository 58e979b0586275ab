"""The fused forecast on recorded rates of real TCP connections whose path changes (`python -m kit.path_rates`)."""

import csv
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, quantiles

import pytest

from downburst.forecasts.fused import WINDOW, Fused
from downburst.forecasts.predictors import PREDICTORS, Sample

RECORDED = Path(__file__).parents[2] / "golden" / "path-rates"
RECORDINGS = ("loss", "neighbours", "rate", "seconds", "transfers")
FUSED = "fused"


@dataclass(frozen=True)
class Judged:
    """The errors of all predictors, and of the fused forecast, for one sample."""

    regime: str
    errors_bps: dict[str, float]


def judged(name: str) -> list[Judged]:
    """Each rate is predicted before it is known, by each predictor alone from the same number of samples."""
    fused, window, found = Fused(), deque[Sample](maxlen=WINDOW), []
    with (RECORDED / f"{name}.csv").open(newline="") as rows:
        for row in csv.DictReader(rows):
            size_bytes = float(row["size_bytes"]) if row["size_bytes"] else None
            sample = Sample(float(row["rate_bps"]), size_bytes)
            together = fused.forecast(size_bytes)
            if together is not None:
                predicted = {one: predict(list(window), size_bytes) for one, predict in PREDICTORS.items()}
                predicted[FUSED] = together.rate_bps
                errors = {one: abs(rate_bps - sample.rate_bps) for one, rate_bps in predicted.items()}
                found.append(Judged(row["regime"], errors))
            window.append(sample)
            assert fused.add(sample)
    return found


def mean_of(errors: Sequence[Judged], name: str) -> float:
    return fmean(one.errors_bps[name] for one in errors)


def best_of(errors: Sequence[Judged]) -> str:
    return min(PREDICTORS, key=lambda name: mean_of(errors, name))


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_fused_error_is_at_most_a_twentieth_above_the_best_predictor_of_the_recording(name: str) -> None:
    errors = judged(name)
    best = best_of(errors)
    assert mean_of(errors, FUSED) <= 1.05 * mean_of(errors, best), best


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
        back = next(at for at in range(len(regime)) if mean_of(regime[at : at + 5], FUSED) <= in_range_bps)
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
    assert all(mean_of(errors, one) > 1.5 * mean_of(errors, FUSED) for one in PREDICTORS if one != "nearest")
