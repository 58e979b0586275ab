"""Forecasts of recorded rates of real TCP connections whose path changes (`python -m kit.path_rates`), judged."""

import csv
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from downburst.forecasts.fused import WINDOW, Fused
from downburst.forecasts.predictors import PREDICTORS, Sample

RECORDED = Path(__file__).parents[1] / "golden" / "path-rates"
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


def mean_error_bps(errors: Sequence[Judged], name: str) -> float:
    """The mean error of one predictor, in bits per second."""
    return fmean(one.errors_bps[name] for one in errors)


def best_of(errors: Sequence[Judged]) -> str:
    """The predictor with the least mean error."""
    return min(PREDICTORS, key=lambda name: mean_error_bps(errors, name))
