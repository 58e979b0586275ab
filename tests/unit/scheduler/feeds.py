"""Arrivals for tests: hand-made ones, a steady feed, and the recorded NGRID hour where it is available."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from downburst.recordings.traces import parse
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.situation import CircuitOffers, SiteFacts, Situation
from downburst_scheduler.sentences import NO_CIRCUITS, NONE_ON_DEMAND


def arrivals(*products: tuple[float, float], span_s: float | None = None) -> Arrivals:
    """Products as (second, bytes)."""
    at_s = np.array([at for at, _ in products], dtype=np.float64)
    sizes = np.array([size for _, size in products], dtype=np.float64)
    return Arrivals(at_s, sizes, span_s or max(float(at_s[-1]) if len(at_s) else 0.0, 1.0))


def steady(*, products: int = 600, size_bytes: float = 100_000, every_s: float = 0.5) -> Arrivals:
    """A product of one size at even distances: 1.6 Mb/s by default."""
    return Arrivals(
        np.arange(products, dtype=np.float64) * every_s, np.full(products, float(size_bytes)), products * every_s
    )


def sites(count: int, **path: float) -> tuple[SiteFacts, ...]:
    """The given number of sites, all with the same path."""
    return tuple(SiteFacts(name=f"site-{number}", **path) for number in range(1, count + 1))  # type: ignore[arg-type]


def live(*wanted: SiteFacts, **other: object) -> Situation:
    """The situation of a hub without circuits on offer."""
    offers = CircuitOffers(none=NO_CIRCUITS, not_on_demand=NONE_ON_DEMAND)
    given = {"headers": True, "order": Order.FIRST_COME, "circuits": offers} | other
    return Situation(sites=wanted, **given)  # type: ignore[arg-type]


def shared_data() -> Path:
    """The directory of recorded data; skips the test if it is missing."""
    root = Path(os.environ.get("DOWNBURST_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not root.is_dir():
        pytest.skip(f"the recorded data are not at {root}; name their directory in DOWNBURST_DATA")
    return root


@cache
def ngrid_hour() -> Arrivals:
    """The recorded hour; skips the test if the shared data are missing."""
    return Arrivals.of_trace(parse(shared_data() / "traces" / "ngrid-20150615T00-1h.txt"))


def peaked(mean_bps: float, peak_bps: float, *, minutes: int = 60) -> Arrivals:
    """Small products every tenth of a second: one minute at the peak, the others at a rate that yields the mean."""
    rest_bps = (mean_bps * minutes - peak_bps) / (minutes - 1)
    at_s = np.arange(minutes * 600) / 10
    rates = np.where((at_s >= 600) & (at_s < 660), peak_bps, rest_bps)
    return Arrivals(at_s, rates / 8 / 10, minutes * 60.0)
