"""The floor of a prediction: the time of the machines themselves, independent of size, rate and path.

Processes wake up, wait for a processor and write files. No model of a network knows that time, so it is measured: at
sites without queues, small products that have a line nearly to themselves are late by half a round trip, their
serialisation and the floor. The remainder of their latencies after the first two is the floor. docs/adr/0046 has the
reasons.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from downburst.sketches.sketch import LatencySketch, rank_of, value_of
from downburst_scheduler.figures.histograms import Floats
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.queues import waits
from downburst_scheduler.models.rates import PathFacts


@dataclass(frozen=True, slots=True)
class Floor:
    """The time that the machines add to every prediction of a plan; zero until it is measured."""

    p50_ms: float = 0.0
    p95_ms: float = 0.0
    p99_ms: float = 0.0
    hub_p50_ms: float | None = None
    """The hub's part of the median: from storage to the first byte sent. None if first bytes are unknown."""
    slowest_site: str | None = None
    slowest_site_p50_ms: float | None = None
    deliveries: int = 0
    """Products times sites behind the figures; 0: not measured yet."""

    def at_ms(self, share: float) -> float:
        """The term of a quantile's prediction."""
        if share >= P99:
            return self.p99_ms
        return self.p95_ms if share >= TAIL else self.p50_ms

    def figures(self) -> dict[str, float | str | bool | None]:
        """The figures stored with a plan; None if not measured."""
        found = self.deliveries > 0
        return {
            "floor_p50_ms": self.p50_ms if found else None,
            "floor_p95_ms": self.p95_ms if found else None,
            "floor_p99_ms": self.p99_ms if found else None,
            "floor_hub_p50_ms": self.hub_p50_ms,
            "floor_slowest_site": self.slowest_site,
            "floor_slowest_site_p50_ms": self.slowest_site_p50_ms,
            "floor_deliveries": self.deliveries,
        }

    @classmethod
    def stated(cls, ms: float) -> Self:
        """A given floor, the same at every quantile."""
        return cls(ms, ms, ms)

    @classmethod
    def of_figures(cls, figures: Mapping[str, object]) -> Self:
        """The floor in a plan's figures; not measured if the plan lacks a quantile."""
        numbers = {name: figures.get(f"floor_{name}") for name in ("p50_ms", "p95_ms", "p99_ms", "deliveries")}
        known = [value for value in numbers.values() if isinstance(value, (int, float))]
        if len(known) < len(numbers):
            return cls()
        p50_ms, p95_ms, p99_ms, deliveries = known
        hub, site, site_ms = (figures.get(f"floor_{name}") for name in ("hub_p50_ms", *SLOWEST))
        return cls(
            p50_ms,
            p95_ms,
            p99_ms,
            hub if isinstance(hub, (int, float)) else None,
            site if isinstance(site, str) else None,
            site_ms if isinstance(site_ms, (int, float)) else None,
            int(deliveries),
        )


@dataclass(frozen=True, slots=True)
class Expected:
    """The models' prediction of a feed's latencies at a site with products that reveal the floor."""

    away_ms: float
    """Half a round trip."""
    own_p50_ms: float
    """Queue, serialisation, and round trips until windows are open."""
    own_p99_ms: float


def expected(arrivals: Arrivals, sites: Mapping[str, tuple[PathFacts, float]]) -> dict[str, Expected]:
    """The sites with hardly any loss on their path, by name; `sites` has the rate at which each gets the arrivals."""
    own_ms: dict[tuple[float, float], tuple[float, float]] = {}
    found = {}
    for name, (path, rate_bps) in sites.items():
        if path.loss <= MOST_LOSS and rate_bps > 0 and len(arrivals.at_s):
            # Rounded down and up to octaves, so that the work does not grow with the sites.
            line = (2.0 ** math.floor(math.log2(rate_bps)), _octave_up(path.round_trip_s))
            if line not in own_ms:
                own_ms[line] = _own_ms(arrivals, *line)
            found[name] = Expected(path.round_trip_s / 2 * 1e3, *own_ms[line])
    return found


@dataclass(frozen=True, slots=True)
class Residuals:
    """The remainders of measured latencies, each value with its count."""

    values_ms: Floats
    counts: Floats

    @classmethod
    def of(cls, measured: LatencySketch, known: Expected) -> Self | None:
        """None if these are not machines' latencies: below zero by more than clock errors, or above a second."""
        values_ms, counts = _values(measured)
        values_ms = values_ms - known.away_ms - known.own_p50_ms
        unsure_ms = (measured.bound_ms or 0.0) + SKETCH_ERROR * known.away_ms
        sane = (values_ms >= -unsure_ms) & (values_ms <= MOST_MS)
        if 2 * counts[sane].sum() <= counts.sum():
            return None
        found = cls(np.maximum(values_ms[sane], 0.0), counts[sane])
        return found if known.own_p99_ms <= max(NEGLIGIBLE_MS, NEGLIGIBLE * found.quantile_ms(0.5)) else None

    @classmethod
    def joined(cls, parts: Sequence["Residuals"]) -> Self:
        """All of them combined."""
        return cls(
            np.concatenate([np.empty(0), *(part.values_ms for part in parts)]),
            np.concatenate([np.empty(0), *(part.counts for part in parts)]),
        )

    @property
    def count(self) -> int:
        """The number of deliveries behind them."""
        return int(self.counts.sum())

    def quantile_ms(self, share: float) -> float:
        """By nearest rank, as for all latencies; there must be a value."""
        order = np.argsort(self.values_ms)
        place = np.searchsorted(np.cumsum(self.counts[order]), rank_of(share, self.count))
        return float(self.values_ms[order][place])


@dataclass(frozen=True, slots=True)
class SiteFloors:
    """Recent measurements, by site."""

    residuals: Mapping[str, Residuals]
    queueing: Mapping[str, LatencySketch]
    """From storage at the hub to the first byte sent, of the same deliveries."""

    @classmethod
    def of(cls, found: Iterable[tuple[str, Expected, LatencySketch, LatencySketch]]) -> Self:
        """From the expectation, the measured latencies and the hub's part, for each site and each of its feeds."""
        parts: dict[str, list[Residuals]] = {}
        queueing: dict[str, LatencySketch] = {}
        for site, known, measured, queued in found:
            residuals = Residuals.of(measured, known) if measured.count else None
            if residuals is not None:
                parts.setdefault(site, []).append(residuals)
                queueing.setdefault(site, LatencySketch()).merge(queued)
        return cls({site: Residuals.joined(some) for site, some in parts.items()}, queueing)

    def floor(self, sites: Iterable[str]) -> Floor | None:
        """The common floor of some sites; None below `FEWEST` deliveries."""
        by_site = {site: self.residuals[site] for site in sites if site in self.residuals}
        every = Residuals.joined(list(by_site.values()))
        if every.count < FEWEST:
            return None
        queued = LatencySketch()
        for site in by_site:
            queued.merge(self.queueing[site])
        medians = {site: one.quantile_ms(0.5) for site, one in by_site.items() if one.count >= FEWEST}
        slowest = max(medians, key=lambda site: medians[site], default=None)
        p50_ms, p95_ms, p99_ms = (every.quantile_ms(share) for share in (0.5, 0.95, P99))
        hub_ms = queued.quantile_ms(0.5)
        return Floor(
            p50_ms,
            p95_ms,
            p99_ms,
            None if hub_ms is None else max(hub_ms, 0.0),
            slowest,
            None if slowest is None else medians[slowest],
            every.count,
        )


def _own_ms(arrivals: Arrivals, rate_bps: float, round_trip_s: float) -> tuple[float, float]:
    """Median and p99 of queue, serialisation and the round trips in which windows open beyond the first."""
    service_s = arrivals.size_bytes * 8 / rate_bps
    turns = np.maximum(np.ceil(np.log2(1 + arrivals.size_bytes / FIRST_WINDOW_BYTES)) - 1, 0)
    own_s = waits(arrivals.at_s, service_s) + service_s + turns * round_trip_s
    p50_s, p99_s = np.quantile(own_s, [0.5, P99])
    return float(p50_s) * 1e3, float(p99_s) * 1e3


def _octave_up(round_trip_s: float) -> float:
    return 2.0 ** math.ceil(math.log2(round_trip_s)) if round_trip_s > 0 else 0.0


def _values(sketch: LatencySketch) -> tuple[Floats, Floats]:
    pairs = [(value_of(bucket), count) for bucket, count in sketch.buckets.items()]
    return np.array([value for value, _ in pairs]), np.array([float(count) for _, count in pairs])


FEWEST = 100
"""Deliveries: fewer have no 99th percentile."""
FIRST_WINDOW_BYTES = 14_480.0
MOST_LOSS = 0.001
"""With more loss, the tail is that of retransmitted segments."""
NEGLIGIBLE_MS, NEGLIGIBLE = 1.0, 0.1
"""The time of queueing and serialisation: a millisecond, or a tenth of the remainder."""
MOST_MS = 1_000.0
"""A longer time is an outage or a queue, not a machine's own time."""
SKETCH_ERROR = 0.02
"""Relative error of a latency in a sketch."""
SLOWEST = ("slowest_site", "slowest_site_p50_ms")
P99, TAIL = 0.99, 0.9
