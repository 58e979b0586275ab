"""The rate of a group by sweeps of its sites' paths: the knee, or where loss and speed are in balance.

A knee is the highest rate that a path carries without loss, so no group goes faster than the lowest one of its sites.
A path that lost packets at every rate has no knee: for it the rate is the one at which the group finishes first, by
the loss at each rate and the way of repair.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from downburst_scheduler.figures.wording import duration, megabits, sites_of
from downburst_scheduler.models.repair import Repair


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Loss that was measured at some rates: linear between them, constant beyond them."""

    rates_bps: tuple[float, ...]
    losses: tuple[float, ...]

    def at(self, rate_bps: float) -> float:
        """The loss at a rate."""
        return float(np.interp(rate_bps, self.rates_bps, self.losses))

    def convex(self) -> "LossCurve":
        """The curve with convex lost bits per second, as of noise, and of a line that is full above its knee.

        A stall during one step of a sweep is a bulge above that, and no property of the path.
        """
        hull = [(0.0, 0.0)]
        for rate_bps, loss in zip(self.rates_bps, self.losses, strict=True):
            point = (rate_bps, rate_bps * loss)
            while len(hull) > 1 and _is_below(point, hull[-2], hull[-1]):
                hull.pop()
            hull.append(point)
        lost_bps = np.interp(self.rates_bps, [rate for rate, _ in hull], [lost for _, lost in hull])
        return LossCurve(self.rates_bps, tuple((lost_bps / np.array(self.rates_bps)).tolist()))


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep of the path to one site."""

    curve: LossCurve
    """With at least one rate, rising."""
    knee_bps: float | None
    words: str
    """The probe and its time, for the reason of a plan: `probe 7 of unl.edu at 2026-01-31 02:00 UTC`."""


@dataclass(frozen=True, slots=True)
class UsableRate:
    """The rate that sweeps allow a group."""

    rate_bps: float
    words: str
    """The sweep that sets it."""


def usable_rate(
    sweeps: Sequence[Sweep], receivers: int, *, size_bytes: float, repair_bps: float, repair: Repair
) -> UsableRate | None:
    """The rate for a group with these sweeps among its sites; None without any."""
    found = [
        UsableRate(sweep.knee_bps, f"{sweep.words} found the knee there")
        for sweep in sweeps
        if sweep.knee_bps is not None
    ]
    lossy = [sweep for sweep in sweeps if sweep.knee_bps is None]
    if lossy:
        curve = _worst([sweep.curve for sweep in lossy])
        best_bps = best_rate_bps(size_bytes, receivers, curve, repair_bps=repair_bps, repair=repair)
        worst = max(lossy, key=lambda sweep: sweep.curve.at(best_bps))
        took = _compared(size_bytes, receivers, curve, best_bps, repair_bps=repair_bps, repair=repair)
        found.append(UsableRate(best_bps, f"{worst.words} found no rate without loss, and {took}"))
    return min(found, key=lambda one: one.rate_bps, default=None)


def group_seconds(
    size_bytes: float, receivers: int, *, rate_bps: float, loss: float, repair_bps: float, repair: Repair
) -> float:
    """Closed form for one large product: its bytes at the rate, then the lost bytes at the repair's rate."""
    return size_bytes * 8 / rate_bps + _repeated(receivers, loss, repair) * size_bytes * 8 / repair_bps


def best_rate_bps(size_bytes: float, receivers: int, curve: LossCurve, *, repair_bps: float, repair: Repair) -> float:
    """The measured rate at which the group finishes first."""

    curve = curve.convex()

    def seconds(rate_bps: float) -> float:
        loss = curve.at(rate_bps)
        return group_seconds(
            size_bytes, receivers, rate_bps=rate_bps, loss=loss, repair_bps=repair_bps, repair=repair
        )

    return min(curve.rates_bps, key=lambda rate: (seconds(rate), rate))


def _compared(
    size_bytes: float, receivers: int, curve: LossCurve, best_bps: float, *, repair_bps: float, repair: Repair
) -> str:
    """The time of a product of this size, with the repair for all receivers, at the best rate and the next best."""
    fitted = curve.convex()
    took = sorted(
        (
            group_seconds(
                size_bytes, receivers, rate_bps=rate, loss=fitted.at(rate), repair_bps=repair_bps, repair=repair
            ),
            rate != best_bps,
            rate,
        )
        for rate in curve.rates_bps
    )
    said = [
        f"{duration(seconds * 1e3)} at {megabits(rate)} with {fitted.at(rate):.2%} lost"
        for seconds, _, rate in took[:2]
    ]
    return f"with repair for {sites_of(receivers)} the mean product takes {' and '.join(said)}"


def _is_below(point: tuple[float, float], before: tuple[float, float], middle: tuple[float, float]) -> bool:
    """True if a middle point is on or above the straight line from the one before it to this point."""
    run, rise = point[0] - before[0], point[1] - before[1]
    return (middle[1] - before[1]) * run >= rise * (middle[0] - before[0])


def _repeated(receivers: int, loss: float, repair: Repair) -> float:
    """The repeated share of a large product: every receiver's loss, or one receiver's, since they differ little."""
    return receivers * loss if repair is Repair.UNICAST else loss


def _worst(curves: Sequence[LossCurve]) -> LossCurve:
    """The highest loss at each rate, up to the highest rate that all of them tried."""
    highest_bps = min((max(curve.rates_bps) for curve in curves), default=math.inf)
    rates = sorted({rate for curve in curves for rate in curve.rates_bps if rate <= highest_bps})
    return LossCurve(tuple(rates), tuple(max(curve.at(rate) for curve in curves) for rate in rates))
