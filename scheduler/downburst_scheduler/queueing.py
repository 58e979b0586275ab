"""What a transport would do with recent arrivals: products are played through a queue, latencies and egress come out.

Every site takes every product of the feed (or a known share of its bytes). Unicast is one copy per site at max-min
fair shares of the egress: a product that waits behind a backlog of b bytes is complete at all n sites (b + s) * n / E
after it came. Multicast is one copy at the leg's rate, plus repair. Both serve products in order of arrival.
Latencies are those of product and site pairs, so that a slow site weighs as much as it is one of the sites.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from downburst_scheduler.models.queues import waits
from downburst_scheduler.traffic import Arrivals, Floats


@dataclass(frozen=True, slots=True)
class Path:
    """What is known of the way to one site; None means not measured."""

    round_trip_s: float = 0.0
    access_bps: float | None = None
    share: float = 1.0
    """Share of the feed's bytes that the site's patterns take."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a transport adds to product bytes, in UDP or TCP payload."""

    share: float
    per_product_bytes: float

    def on(self, size_bytes: Floats) -> Floats:
        """The bytes sent for products of these sizes."""
        return size_bytes * (1 + self.share) + self.per_product_bytes


@dataclass(frozen=True, slots=True)
class Prediction:
    """Latencies over products and sites, and the egress that is asked of the hub."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    egress_bps: float
    peak_egress_bps: float
    """In the busiest second; may be more than the hub has, then products wait."""


def unicast(
    arrivals: Arrivals, paths: Sequence[Path], *, egress_bps: float, overhead: Overhead | None = None
) -> Prediction:
    """One copy to each site."""
    sent_bytes = (overhead or UNICAST_OVERHEAD).on(arrivals.size_bytes)
    copies = sum(path.share for path in paths)
    samples = [
        (_unicast_latencies_s(arrivals.at_s, sent_bytes, path=path, rate_bps=rate_bps), float(sites))
        for (path, rate_bps), sites in _alike(paths, egress_bps).items()
    ]
    return _prediction(arrivals, samples, egress=sent_bytes * copies)


def multicast(
    arrivals: Arrivals,
    paths: Sequence[Path],
    *,
    rate_bps: float,
    repair_share: float = 0.0,
    overhead: Overhead | None = None,
) -> Prediction:
    """One copy to a group at `rate_bps`; `repair_share` of the bytes is sent a second time."""
    sent_bytes = (overhead or MULTICAST_OVERHEAD).on(arrivals.size_bytes)
    rate_bps = min([rate_bps, *(path.access_bps for path in paths if path.access_bps)])
    service_s = sent_bytes * (1 + repair_share) * 8 / rate_bps
    wait_s = waits(arrivals.at_s, service_s)
    repaired = _repaired_products(sent_bytes, repair_share)
    samples: list[tuple[Floats, Floats | float]] = []
    for round_trip_s, sites in Counter(_round_trips_s(paths)).items():
        clean_s = wait_s + service_s + round_trip_s / 2
        samples.append((clean_s, sites * (1 - repaired)))
        if repair_share > 0:
            samples.append((clean_s + round_trip_s + REPAIR_WAIT_S, sites * repaired))
    return _prediction(arrivals, samples, egress=sent_bytes * (1 + repair_share))


def together(first: Prediction, first_sites: int, second: Prediction, second_sites: int) -> Prediction:
    """A plan of two legs: egress adds up, the quantiles are bounded by the slower leg that can reach them."""
    if first_sites == 0 or second_sites == 0:
        return second if first_sites == 0 else first
    slow, slow_sites = (first, first_sites) if first.p99_ms >= second.p99_ms else (second, second_sites)
    fast = second if slow is first else first
    wide = slow if 2 * slow_sites > first_sites + second_sites else fast
    return Prediction(
        p50_ms=wide.p50_ms,
        p95_ms=max(first.p95_ms, second.p95_ms),
        p99_ms=max(first.p99_ms, second.p99_ms),
        max_ms=max(first.max_ms, second.max_ms),
        egress_bps=first.egress_bps + second.egress_bps,
        peak_egress_bps=first.peak_egress_bps + second.peak_egress_bps,
    )


def fair_rates_bps(paths: Sequence[Path], egress_bps: float) -> list[float]:
    """Max-min fair shares: a site that can't take its share leaves the rest to the others."""
    rates = [0.0] * len(paths)
    left_bps, weight = egress_bps, sum(path.share for path in paths)
    by_need = sorted(range(len(paths)), key=lambda index: _need(paths[index]))
    for index in by_need:
        path = paths[index]
        fair_bps = left_bps * path.share / weight if weight > 0 else left_bps
        rates[index] = min(fair_bps, path.access_bps or math.inf)
        left_bps -= rates[index]
        weight -= path.share
    return rates


def _need(path: Path) -> float:
    return (path.access_bps or math.inf) / path.share if path.share > 0 else math.inf


def _alike(paths: Sequence[Path], egress_bps: float) -> Mapping[tuple[Path, float], int]:
    """Sites that the model can't tell apart are computed once."""
    rates = fair_rates_bps(paths, egress_bps)
    trips_s = _round_trips_s(paths)
    return Counter(
        (Path(round_trip_s, share=path.share), rate_bps)
        for path, round_trip_s, rate_bps in zip(paths, trips_s, rates, strict=True)
        if path.share > 0
    )


def _unicast_latencies_s(at_s: Floats, sent_bytes: Floats, *, path: Path, rate_bps: float) -> Floats:
    """A site that takes a share of the bytes has a queue whose products are smaller by as much."""
    service_s = sent_bytes * 8 / rate_bps
    wait_s = waits(at_s, service_s * path.share)
    idle = wait_s <= 0
    rounds = np.ceil(np.log2(1 + sent_bytes / FIRST_WINDOW_BYTES))
    ramp_s = np.where(idle, np.maximum(rounds - 1, 0), 0) * path.round_trip_s
    return wait_s + service_s + ramp_s + path.round_trip_s / 2


def _repaired_products(sent_bytes: Floats, repair_share: float) -> Floats:
    """Share of the product and site pairs that miss at least one block, if blocks are lost independently."""
    blocks = np.ceil(sent_bytes / BLOCK_BYTES)
    return 1 - (1 - min(repair_share, 0.99)) ** blocks


def _prediction(
    arrivals: Arrivals, samples: Sequence[tuple[Floats, Floats | float]], *, egress: Floats
) -> Prediction:
    values_s = np.concatenate([values for values, _ in samples])
    weights = np.concatenate([np.broadcast_to(weight, values.shape) for values, weight in samples])
    p50, p95, p99, worst = _weighted_quantiles(values_s, weights, (0.5, 0.95, 0.99, 1.0)) * 1e3
    per_second = np.bincount(arrivals.at_s.astype(np.int64), weights=egress)
    return Prediction(
        p50_ms=float(p50),
        p95_ms=float(p95),
        p99_ms=float(p99),
        max_ms=float(worst),
        egress_bps=float(egress.sum()) * 8 / arrivals.span_s,
        peak_egress_bps=float(per_second.max()) * 8,
    )


def _weighted_quantiles(values: Floats, weights: Floats, shares: tuple[float, ...]) -> Floats:
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    wanted = np.array(shares) * cumulated[-1] * (1 - 1e-12)
    result: Floats = values[order][np.searchsorted(cumulated, wanted, side="left")]
    return result


def _round_trips_s(paths: Sequence[Path]) -> list[float]:
    """As measured for few sites; in steps of a tenth for many, so that the work stays bounded."""
    if len(paths) <= EXACT_SITES:
        return [path.round_trip_s for path in paths]
    return [_stepped_s(path.round_trip_s) for path in paths]


def _stepped_s(round_trip_s: float) -> float:
    return 1.1 ** round(math.log(round_trip_s, 1.1)) if round_trip_s >= SHORTEST_ROUND_TRIP_S else 0.0


UNICAST_OVERHEAD = Overhead(share=0.002, per_product_bytes=120)
"""TLS records of 16 KiB and a header per product."""
MULTICAST_OVERHEAD = Overhead(share=0.045, per_product_bytes=150)
"""Header and seal of each datagram, and the product's entry in the manifest."""
FIRST_WINDOW_BYTES = 14_480.0
"""Ten segments of 1448 bytes: what Linux sends at once after idleness."""
BLOCK_BYTES = 1_400.0
REPAIR_WAIT_S = 0.02
"""How long a receiver holds back a request so that late packets are not asked for."""
EXACT_SITES = 32
SHORTEST_ROUND_TRIP_S = 1e-4
