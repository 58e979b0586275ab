"""The nearest values of each condition at which the planner chooses otherwise, by its own decisions.

Values are tried outwards in growing steps until one changes the choice, then the step is halved. A change and its
reversal within one step are not seen.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from downburst.domain.plans import ConditionFlip, Conditions, OtherConditions, Transport

Choose = Callable[[OtherConditions], Transport]


@dataclass(frozen=True, slots=True)
class Slider:
    """A condition that can be changed, and the values it can have."""

    condition: str
    least: float
    most: float
    whole: bool = False

    def rounded(self, value: float) -> float:
        """The nearest value with three digits, within the limits; a flip is given as it was tried."""
        kept = min(max(value, self.least), self.most)
        return round(kept) if self.whole else float(f"{kept:.3g}")

    def set(self, other: OtherConditions, value: float) -> OtherConditions:
        """The other conditions with this value."""
        changed: dict[str, Any] = {self.condition: int(value) if self.whole else value}
        return replace(other, **changed)


def flips_of(
    tried: Conditions, other: OtherConditions, chosen: Transport, choose: Choose, *, may_go_on: Callable[[], bool]
) -> tuple[tuple[ConditionFlip, ...], bool]:
    """The flips below and above each condition, and False if the search had to end before its time."""
    found = []
    for slider in SLIDERS:
        now = getattr(tried, slider.condition)
        for below in (True, False) if now is not None else ():
            search = _Search(slider, now, below=below, choose=partial(_chosen_at, choose, other, slider))
            flip = search.run(chosen, may_go_on)
            if flip is not None:
                found.append(ConditionFlip(slider.condition, below, *flip))
            if not may_go_on():
                return tuple(found), False
    return tuple(found), True


def _chosen_at(choose: Choose, other: OtherConditions, slider: Slider, value: float) -> Transport:
    return choose(slider.set(other, value))


@dataclass(frozen=True, slots=True)
class _Search:
    slider: Slider
    now: float
    below: bool
    choose: Callable[[float], Transport]

    def run(self, chosen: Transport, may_go_on: Callable[[], bool]) -> tuple[float, Transport] | None:
        near = self.now
        for far in self._steps():
            if not may_go_on():
                return None
            other = self.choose(far)
            if other is not chosen:
                return self._halved(near, (far, other), chosen)
            near = far
        return None

    def _steps(self) -> Iterator[float]:
        end, before = self.slider.least if self.below else self.slider.most, self.now
        for factor in STEPS:
            at = self.slider.rounded(self.now / factor if self.below else self.now * factor)
            if at != before and (at < before) is self.below:
                yield at
                before = at
        if before != end and (end < before) is self.below:
            yield end

    def _halved(self, near: float, flip: tuple[float, Transport], chosen: Transport) -> tuple[float, Transport]:
        """The nearest flip between a value without one and one with it; few trials, so time is not looked at."""
        far, transport = flip
        for _ in range(HALVINGS):
            middle = self.slider.rounded(math.sqrt(near * far))
            if middle in (near, far) or max(near, far) / min(near, far) < PRECISION:
                break
            other = self.choose(middle)
            if other is chosen:
                near = middle
            else:
                far, transport = middle, other
        return far, transport


SITES = Slider("sites", 1, 500, whole=True)
EGRESS = Slider("egress_bps", 1e6, 400e9)
OBJECTIVE = Slider("objective_ms", 10.0, 600_000.0)
SET_UP = Slider("setup_s", 0.1, 3_600.0)
SLIDERS = (SITES, EGRESS, OBJECTIVE, SET_UP)
STEPS = (1.3, 3.0, 20.0)
"""Then the limit itself: four trials where nothing flips, twelve where something does."""
HALVINGS = 8
PRECISION = 1.03
