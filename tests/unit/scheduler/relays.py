"""Models of relays between hub and sites, which no hub plans: what the worked examples say of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from downburst_scheduler.figures.histograms import LogHistogram
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.models.delays import Latencies
from downburst_scheduler.models.queues import waits
from downburst_scheduler.models.rates import PathFacts, connection_bps
from downburst_scheduler.models.transports import Outcome, fair_rates_bps, peak_minute_bps


@dataclass(frozen=True, slots=True)
class RelayChoice:
    """A path in segments beside the direct one."""

    direct_bps: float
    bound_bps: float
    """The slowest segment."""
    expected_bps: float
    """The share of it achieved in practice."""

    @property
    def relay(self) -> bool:
        """True if relays are worth it."""
        return self.expected_bps > self.direct_bps


def relay_choice(direct_bps: float, segments_bps: Sequence[float]) -> RelayChoice:
    """Compares relays with the direct path."""
    bound_bps = min(segments_bps)
    return RelayChoice(direct_bps, bound_bps, bound_bps * RELAYED_SHARE)


def split_gain(path: PathFacts, segments: Sequence[PathFacts]) -> float:
    """The speed-up of a path that relays divide; an upper bound, of which BBR gains little."""
    return min(connection_bps(segment) for segment in segments) / connection_bps(path)


def relayed(
    arrivals: Arrivals, sites: Sequence[Sequence[PathFacts]], *, egress_bps: float, residence_s: float = 0.005
) -> Outcome:
    """Each site behind relays: its path in segments, which forward a product while it arrives."""
    rates = fair_rates_bps([segments[0] for segments in sites], egress_bps)
    found: dict[tuple[tuple[PathFacts, ...], float], LogHistogram] = {}
    latencies = []
    for segments, rate_bps in zip(sites, rates, strict=True):
        key = (tuple(segments), rate_bps)
        if key not in found:
            found[key] = _tandem(arrivals, segments, rate_bps, residence_s)
        latencies.append(found[key])
    copies = sum(segments[0].share for segments in sites)
    return Outcome(
        latencies=Latencies.of_sites(latencies),
        egress_bps=arrivals.mean_bps * copies,
        peak_egress_bps=peak_minute_bps(arrivals) * copies,
    )


def _tandem(arrivals: Arrivals, segments: Sequence[PathFacts], first_bps: float, residence_s: float) -> LogHistogram:
    """A relay forwards a product while it arrives, and ends no earlier than the arrival of the product's end."""
    came_s, ended_s = arrivals.at_s, np.zeros(len(arrivals.at_s))
    for number, segment in enumerate(segments):
        rate_bps = first_bps if number == 0 else connection_bps(segment)
        service_s = arrivals.size_bytes * 8 / rate_bps
        wait_s = waits(came_s, service_s)
        away_s = segment.round_trip_s / 2 + (residence_s if number < len(segments) - 1 else 0.0)
        ended_s = np.maximum(came_s + wait_s + service_s, ended_s) + away_s
        came_s = np.maximum.accumulate(came_s + wait_s + away_s)
    seen = LogHistogram()
    seen.add(ended_s - arrivals.at_s)
    return seen


RELAYED_SHARE = 0.85
"""Measured on a three-segment path: 762 of 900 Mb/s."""
