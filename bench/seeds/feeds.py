"""The feeds of the studies as arrivals, and the recorded hour of NGRID or a made-up one in its place."""

from functools import cache

import numpy as np

from bench.harness.recorded import recorded_hour
from downburst_scheduler.figures.traffic import Arrivals

DAY_S = 86_400.0
CONDUIT_DAY_BYTES, CONDUIT_MINUTE_BYTES = 60e9, 250e6
NEXRAD2_DAY_BYTES, NEXRAD2_MINUTE_BYTES = 56e9, 58e6
MINUTES = 60


def conduit() -> Arrivals:
    """An hour with CONDUIT's mean of the day and its peak minute."""
    return _peaked(CONDUIT_DAY_BYTES, CONDUIT_MINUTE_BYTES)


def nexrad2() -> Arrivals:
    """An hour with NEXRAD2's mean of the day and its peak minute."""
    return _peaked(NEXRAD2_DAY_BYTES, NEXRAD2_MINUTE_BYTES)


def one(size_bytes: float) -> Arrivals:
    """One product."""
    return Arrivals(np.array([0.0]), np.array([size_bytes]), 1.0)


def steady() -> Arrivals:
    """A product of 100 kB each half second."""
    return Arrivals(np.linspace(0.0, 300.0, 600, endpoint=False), np.full(600, 100_000.0), 300.0)


@cache
def hour() -> tuple[Arrivals, str]:
    """NGRID's hour, and a note if it is a made-up one."""
    notes: list[str] = []
    return Arrivals.of_trace(recorded_hour(notes)), "; ".join(notes)


def _peaked(day_bytes: float, minute_bytes: float) -> Arrivals:
    """Ten products a second: one minute at the peak, the others at the rate that yields the mean of the day."""
    mean_minute_bytes = day_bytes * 60 / DAY_S
    rest_bytes = (mean_minute_bytes * MINUTES - minute_bytes) / (MINUTES - 1)
    at_s = np.linspace(0.0, MINUTES * 60.0, MINUTES * 600, endpoint=False)
    in_peak = (at_s >= 599.95) & (at_s < 659.95)
    return Arrivals(at_s, np.where(in_peak, minute_bytes, rest_bytes) / 600, MINUTES * 60.0)
