"""A forecast that weighs several predictors by their recent errors, after the Network Weather Service."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from downburst.forecasts.predictors import PREDICTORS, Predictor, Sample


@dataclass(frozen=True, slots=True)
class Forecast:
    """The rate to expect, and how far such forecasts were off of late."""

    rate_bps: float
    error_bps: float
    """The recent mean absolute error of the fused forecast."""
    samples: int
    """The number of measured rates that it rests on."""
    best: str
    """The predictor with the least recent error."""

    @property
    def error_share(self) -> float:
        """The error as a share of the rate."""
        return self.error_bps / self.rate_bps


class Fading:
    """A mean absolute error in which each error weighs less than the one after it."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._weight = 0.0

    def add(self, error: float) -> None:
        """Counts a further error."""
        self._sum = self._sum * FADING + abs(error)
        self._weight = self._weight * FADING + 1.0

    @property
    def mean(self) -> float:
        """The mean; 0 without errors."""
        return self._sum / self._weight if self._weight else 0.0


class Fused:
    """Predicts with every predictor, and weighs each by the inverse of its recent error to a high power.

    By the plain inverse, a predictor that is off by twice as much still has half the weight of the best, and the
    fused forecast is up to 43 % worse than the best predictor alone. By the 16th power, one that is off by half as
    much again has less than a five-hundredth, while predictors that are equally good are averaged, which is often
    better than each of them (decision 53).

    When the path changes, all predictors are wrong alike, and those with a long memory stay so. So two successive
    errors on the same side, each several times as large as usual, drop the samples before them. One outlier does not.
    Transfers of known sizes are kept: their rates vary with their sizes.

    Deterministic, with bounded memory; a sample costs time in proportion to the window.
    """

    def __init__(self, predictors: Mapping[str, Predictor] = PREDICTORS) -> None:
        self._predictors = predictors
        self._window: deque[Sample] = deque(maxlen=WINDOW)
        self._errors = {name: Fading() for name in predictors}
        self._error = Fading()
        self._usual_bps = 0.0
        """The fused forecast's error before it began to be striking."""
        self._struck_bps = 0.0
        """The striking error of the last sample; 0 if it was not."""

    def __len__(self) -> int:
        """The number of samples in the window."""
        return len(self._window)

    def add(self, sample: Sample) -> bool:
        """Judges the predictors by a measured rate, then lets them use it. False: the figures can't be true."""
        if not sample.sound:
            return False
        if self._window:
            predicted_bps = self._predicted_bps(sample.size_bytes)
            error_bps = self._fused_bps(predicted_bps) - sample.rate_bps
            if sample.size_bytes is None:
                self._look_for_switch(error_bps, sample.rate_bps)
            self._error.add(error_bps)
            for name, rate_bps in predicted_bps.items():
                self._errors[name].add(rate_bps - sample.rate_bps)
        self._window.append(sample)
        return True

    @property
    def typical_bytes(self) -> float | None:
        """The median size of the transfers in the window; None if most samples are of no single transfer."""
        sizes = [one.size_bytes for one in self._window if one.size_bytes is not None]
        return median(sizes) if 2 * len(sizes) > len(self._window) else None

    def drop_oldest(self) -> None:
        """Drops the oldest sample; the errors stay."""
        self._window.popleft()

    def forecast(self, size_bytes: float | None = None) -> Forecast | None:
        """The rate to expect of a transfer, of this size if it is given; None before the first sample."""
        if not self._window:
            return None
        return Forecast(
            rate_bps=self._fused_bps(self._predicted_bps(size_bytes)),
            error_bps=self._error.mean,
            samples=len(self._window),
            best=min(self._errors, key=lambda name: self._errors[name].mean),
        )

    def _look_for_switch(self, error_bps: float, rate_bps: float) -> None:
        """Drops the samples before a switch: the second striking error on the same side, after a steady time."""
        striking = abs(error_bps) > max(STRIKING * self._usual_bps, CLEAR * rate_bps)
        if not striking or len(self._window) < STEADY:
            self._usual_bps, self._struck_bps = self._error.mean, 0.0
        elif self._struck_bps * error_bps > 0:
            self._window = deque([self._window[-1]], maxlen=WINDOW)
            self._struck_bps = 0.0
        else:
            self._struck_bps = error_bps

    def _predicted_bps(self, size_bytes: float | None) -> dict[str, float]:
        window = list(self._window)
        return {name: predict(window, size_bytes) for name, predict in self._predictors.items()}

    def _fused_bps(self, predicted_bps: Mapping[str, float]) -> float:
        least = min(error.mean for error in self._errors.values())
        weights = {name: ((least + 1) / (error.mean + 1)) ** POWER for name, error in self._errors.items()}
        total = sum(weights.values())
        return sum(weights[name] / total * rate_bps for name, rate_bps in predicted_bps.items())


WINDOW = 32
"""Samples that predictors see."""
POWER = 16
FADING = 0.9
STRIKING = 4.0
"""Times the usual error."""
CLEAR = 0.3
"""As a share of the rate: no smaller error is a switch, however exact the forecasts were."""
STEADY = 8
"""Samples before a switch, without which nothing is usual."""
