"""Measured over predicted latencies of one feed: the factor for predictions, and when to mistrust them.

Each review compares the latencies of the last minutes with the models' predictions for the arrivals of that time, for
every transport that served sites. The median of the last reviews is the factor. A feed with a ratio that stays
outside `TRUSTED` is not moved by predictions until it is back inside or an operator acts.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from downburst.domain.plans import Transport
from downburst_scheduler.models.situation import Calibration


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Two quantiles of a latency."""

    p50_ms: float
    p99_ms: float

    def plus(self, p50_ms: float, p99_ms: float) -> "Quantiles":
        """The quantiles with a term added to each."""
        return Quantiles(self.p50_ms + p50_ms, self.p99_ms + p99_ms)

    def over(self, predicted: "Quantiles", *, floor_ms: float) -> "Ratio":
        """The ratio to a prediction; values below the floor are irrelevant to decisions and count as the floor."""
        return Ratio(
            max(self.p50_ms, floor_ms) / max(predicted.p50_ms, floor_ms),
            max(self.p99_ms, floor_ms) / max(predicted.p99_ms, floor_ms),
        )


@dataclass(frozen=True, slots=True)
class Ratio:
    """Measured over predicted."""

    p50: float
    p99: float

    @property
    def trusted(self) -> bool:
        """True if the tail, to which objectives refer, is about right."""
        return TRUSTED[0] <= self.p99 <= TRUSTED[1]


class FeedCalibration:
    """The ratios of one feed's transports; bounded."""

    def __init__(self) -> None:
        self._ratios: dict[Transport, deque[Ratio]] = {}
        self._outside: dict[Transport, int] = {}

    def add(self, transport: Transport, ratio: Ratio) -> None:
        """Adds one review."""
        self._ratios.setdefault(transport, deque(maxlen=KEPT)).append(ratio)
        self._outside[transport] = 0 if ratio.trusted else self._outside.get(transport, 0) + 1

    def factors(self) -> Mapping[Transport, Calibration]:
        """The factors of the transports with enough reviews, limited to the trusted range."""
        enough = {name: ratios for name, ratios in self._ratios.items() if len(ratios) >= FEWEST}
        return {
            name: Calibration(_within(median(one.p50 for one in ratios)), _within(median(one.p99 for one in ratios)))
            for name, ratios in enough.items()
        }

    def mistrust(self, transport: Transport) -> str | None:
        """The reason not to act on predictions for a transport; None if they are trusted."""
        if self._outside.get(transport, 0) < FEWEST:
            return None
        ratio = median(one.p99 for one in list(self._ratios[transport])[-FEWEST:])
        return (
            f"the p99 measured by {transport} is {ratio:.2g} times the predicted one, outside {TRUSTED[0]:g} to "
            f"{TRUSTED[1]:g}, so the transport does not change by itself until that is over, or until an "
            "operator pins or unpins it"
        )

    def forget(self) -> None:
        """Starts over after an operator's action."""
        self._ratios.clear()
        self._outside.clear()

    def figures(self) -> dict[str, float | str | bool | None]:
        """The factors in the form stored with a plan."""
        shown: dict[str, float | str | bool | None] = {}
        for name, factor in self.factors().items():
            shown |= {f"calibration_{name}_p50": factor.p50, f"calibration_{name}_p99": factor.p99}
        return shown

    @classmethod
    def resumed(cls, figures: Mapping[str, object]) -> "FeedCalibration":
        """Continues from the factors of a plan."""
        made = cls()
        for transport in Transport:
            p50, p99 = figures.get(f"calibration_{transport}_p50"), figures.get(f"calibration_{transport}_p99")
            if isinstance(p50, (int, float)) and isinstance(p99, (int, float)):
                made._ratios[transport] = deque([Ratio(p50, p99)] * FEWEST, maxlen=KEPT)
        return made


def _within(ratio: float) -> float:
    return min(max(ratio, TRUSTED[0]), TRUSTED[1])


TRUSTED = (0.5, 2.0)
KEPT = 31
"""Reviews: half an hour at one a minute, so that the factor follows an hour of the day which differs."""
FEWEST = 5
"""Consecutive reviews that make a factor, or a doubt."""
