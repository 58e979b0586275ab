"""Latencies of products at sites: played once for sites that share a queue, then shifted by each site's own path.

A distribution is stored by magnitude and by the number of round trips for the opening of a window, so that a site at
another distance costs some thousand steps instead of one per product.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from downburst_scheduler.figures.histograms import BINS, Floats, LogHistogram, places


@dataclass(frozen=True, slots=True)
class Delays:
    """Sojourns in a queue, by magnitude and by additional round trips."""

    sojourn_s: Floats
    round_trips: Floats
    weight: Floats

    @classmethod
    def of_values(cls, sojourn_s: Floats, round_trips: Floats, weight: Floats) -> "Delays":
        """Delays from sojourns with a whole number of round trips each."""
        place = round_trips.astype(np.int64) * BINS + places(sojourn_s)
        counts = np.bincount(place, weights=weight)
        sums = np.bincount(place, weights=weight * sojourn_s)
        used = np.flatnonzero(counts)
        return cls(sums[used] / counts[used], (used // BINS).astype(np.float64), counts[used].astype(np.float64))

    def at_site(self, round_trip_s: float) -> LogHistogram:
        """The latencies at a site of this distance: half a round trip to arrive, plus the additional ones."""
        seen = LogHistogram()
        seen.add(self.sojourn_s + (self.round_trips + 0.5) * round_trip_s, self.weight)
        return seen


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies over all products and sites, and per site for the objective."""

    together: LogHistogram
    sites: tuple[LogHistogram, ...] = field(repr=False)

    @classmethod
    def of_sites(cls, sites: Iterable[LogHistogram], counts: Iterable[float] | None = None) -> "Latencies":
        """Combines sites, weighted by their products and their counts."""
        every = tuple(sites)
        weights: dict[int, float] = {}
        for one, count in zip(every, counts or [1.0] * len(every), strict=True):
            weights[id(one)] = weights.get(id(one), 0.0) + count
        together = LogHistogram()
        for one in {id(one): one for one in every}.values():
            together.merge(one, weight=weights[id(one)])
        return cls(together, every)

    @classmethod
    def together_of(cls, parts: Sequence["Latencies"]) -> "Latencies":
        """Combines sites that are served in several ways."""
        together = LogHistogram()
        for part in parts:
            together.merge(part.together)
        return cls(together, tuple(site for part in parts for site in part.sites))

    def quantile_s(self, share: float) -> float:
        """A quantile over products and sites."""
        return self.together.quantile(share)

    def worst_site_s(self, share: float) -> float:
        """The quantile at the worst site."""
        return max((site.quantile(share) for site in {id(one): one for one in self.sites}.values()), default=0.0)
