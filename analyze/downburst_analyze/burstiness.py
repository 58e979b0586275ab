"""Burstiness of a feed, from a stream of arrivals of any length in bounded memory; a file is such a stream.

`Burstiness` is given arrivals in pieces and keeps sums, histograms and the open bins; the figures do not depend on
the division of the stream into pieces. Bins begin at the first product. Silence is counted by the gap and by its
duration, which are different measures: a hundredth of the gaps may hold half of the time.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from downburst_scheduler.figures.histograms import Floats, LogHistogram


@dataclass(frozen=True, slots=True)
class BinFigures:
    """Burstiness seen through bins of one width; the last bin may be cut short by the end."""

    peak_bps: float
    peak_to_mean: float
    empty_share: float
    variation: float
    """Standard deviation over mean of the bytes in a bin."""
    dispersion_of_products: float
    """Variance over mean of the number of products in a bin: 1 for independent arrivals, more for bursts."""
    dispersion_of_bytes: float
    """The same of bytes, in mean product sizes; growth with the width means long memory."""


@dataclass(frozen=True, slots=True)
class SilenceFigures:
    """Gaps between products that are longer than `longer_than_s`."""

    longer_than_s: float
    gaps: int
    share_of_gaps: float
    share_of_time: float


@dataclass(frozen=True, slots=True)
class SizeFigures:
    """Sizes of products: quantiles, and the weight of the tail."""

    quantiles_bytes: dict[str, float]
    mean_bytes: float
    log_mean: float
    log_deviation: float
    squared_variation: float
    tail_exponent_above_p90: float | None
    share_of_bytes_in_top_1_percent: float


@dataclass(frozen=True, slots=True)
class BurstFigures:
    """Runs of products with no gap over `split_s` inside."""

    split_s: float
    bursts: int
    mean_products: float
    mean_length_s: float
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class HourFigures:
    """Arrivals at one hour of the day (UTC), over all days of the stream."""

    hour_utc: int
    seconds: float
    products: int
    bytes: int
    mean_bps: float


@dataclass(frozen=True, slots=True)
class FeedFigures:
    """All figures of `Burstiness`."""

    products: int
    bytes: int
    first_us: int
    span_s: float
    mean_bps: float
    widths: dict[int, BinFigures]
    hurst: float | None
    """From the decrease of the variance of counts with the width; 0.5 is no memory, 1 is all memory."""
    gap_quantiles_s: dict[str, float]
    gap_variation: float
    silence: tuple[SilenceFigures, ...]
    sizes: SizeFigures
    bursts: BurstFigures
    worst_hour_over_mean: float | None
    by_hour: tuple[HourFigures, ...]


class Burstiness:
    """Takes arrivals in order of time and computes the figures of all of them."""

    def __init__(self) -> None:
        self._products = 0
        self._bytes = 0
        self._first_us: int | None = None
        self._last_us = 0
        self._bins = {width: _Bins(width) for width in WIDTHS_S}
        self._hours = _Hours()
        self._sizes = LogHistogram()
        self._log_sum = self._log_squares = self._squares = 0.0
        self._gaps = LogHistogram()
        self._gap_squares = 0.0
        self._silences = {longer_s: [0, 0.0] for longer_s in SILENCES_S}
        self._bursts = _Bursts()

    def add(self, at_us: npt.NDArray[np.int64], size_bytes: Floats) -> None:
        """Counts products; times in microseconds since 1970, in order, not before those of the last call."""
        if len(at_us) == 0:
            return
        if self._first_us is None:
            self._first_us = self._last_us = int(at_us[0])
            gaps_s = np.diff(at_us) / 1e6
        else:
            gaps_s = np.diff(at_us, prepend=self._last_us) / 1e6
        self._bursts.add(gaps_s, size_bytes, first=self._products == 0)
        for bins in self._bins.values():
            bins.add((at_us - self._first_us) // 1_000_000, size_bytes)
        self._hours.add(at_us, size_bytes)
        self._count_sizes(size_bytes)
        self._count_gaps(gaps_s)
        self._products += len(at_us)
        self._bytes += int(size_bytes.sum())
        self._last_us = int(at_us[-1])

    def figures(self) -> FeedFigures:
        """The figures so far; without products they are zero."""
        first_us = self._first_us or 0
        span_s = max((self._last_us - first_us) / 1e6, SHORTEST_SPAN_S) if self._products else 0.0
        mean_bps = self._bytes * 8 / span_s if span_s else 0.0
        widths = {
            width: bins.figures(mean_bps, mean_size=self._bytes / self._products, span_s=span_s)
            for width, bins in self._bins.items()
            if mean_bps and round(span_s) >= FEWEST_BINS * width
        }
        return FeedFigures(
            products=self._products,
            bytes=self._bytes,
            first_us=first_us,
            span_s=span_s,
            mean_bps=mean_bps,
            widths=widths,
            hurst=_hurst({width: self._bins[width].relative_variance() for width in widths}),
            gap_quantiles_s=_quantiles(self._gaps),
            gap_variation=_variation(self._gaps.count, float(self._gaps.sums.sum()), self._gap_squares),
            silence=self._silence(),
            sizes=self._size_figures(),
            bursts=self._bursts.figures(),
            worst_hour_over_mean=self._worst_hour(span_s, mean_bps),
            by_hour=self._hours.figures(first_us, self._last_us),
        )

    def _count_sizes(self, size_bytes: Floats) -> None:
        logs = np.log(np.maximum(size_bytes, 1.0))
        self._sizes.add(size_bytes)
        self._log_sum += float(logs.sum())
        self._log_squares += float((logs**2).sum())
        self._squares += float((size_bytes**2).sum())

    def _count_gaps(self, gaps_s: Floats) -> None:
        self._gaps.add(gaps_s)
        self._gap_squares += float((gaps_s**2).sum())
        for longer_s, (count, seconds) in self._silences.items():
            long = gaps_s[gaps_s > longer_s]
            self._silences[longer_s] = [count + len(long), seconds + float(long.sum())]

    def _silence(self) -> tuple[SilenceFigures, ...]:
        gaps, seconds = max(self._gaps.count, 1.0), max(float(self._gaps.sums.sum()), 1e-9)
        return tuple(
            SilenceFigures(longer_s, int(count), count / gaps, held_s / seconds)
            for longer_s, (count, held_s) in self._silences.items()
        )

    def _size_figures(self) -> SizeFigures:
        count = max(self._products, 1)
        mean_log = self._log_sum / count
        return SizeFigures(
            quantiles_bytes=_quantiles(self._sizes),
            mean_bytes=self._bytes / count,
            log_mean=mean_log,
            log_deviation=math.sqrt(max(self._log_squares / count - mean_log**2, 0.0)),
            squared_variation=_variation(count, self._bytes, self._squares) ** 2,
            tail_exponent_above_p90=self._sizes.tail_exponent(0.9),
            share_of_bytes_in_top_1_percent=self._sizes.share_of_largest(0.01),
        )

    def _worst_hour(self, span_s: float, mean_bps: float) -> float | None:
        return self._bins[3600].peak_bytes() * 8 / 3600 / mean_bps if span_s >= 2 * 3600 and mean_bps else None


class _Bins:
    """Sums over bins of one width; only the last bin with a product is still open."""

    def __init__(self, width_s: int) -> None:
        self._width_s = width_s
        self._number, self._count, self._volume = 0, 0.0, 0.0
        self._used = 0
        self._sums = np.zeros(4)
        self._peak = 0.0

    def add(self, second: npt.NDArray[np.int64], size_bytes: Floats) -> None:
        number = second // self._width_s
        starts = np.flatnonzero(np.diff(number, prepend=-1))
        counts = np.diff(starts, append=len(number)).astype(np.float64)
        volumes = np.add.reduceat(size_bytes, starts)
        if number[0] == self._number:
            counts[0] += self._count
            volumes[0] += self._volume
        else:
            self._close(np.array([self._count]), np.array([self._volume]))
        self._close(counts[:-1], volumes[:-1])
        self._number, self._count, self._volume = int(number[-1]), float(counts[-1]), float(volumes[-1])

    def figures(self, mean_bps: float, *, mean_size: float, span_s: float) -> BinFigures:
        bins, sums = self._whole(span_s)
        peak_bps = self.peak_bytes() * 8 / self._width_s
        mean_volume = sums[2] / bins
        return BinFigures(
            peak_bps=peak_bps,
            peak_to_mean=peak_bps / mean_bps,
            empty_share=1 - (self._used + 1) / (self._number + 1),
            variation=_variation(bins, sums[2], sums[3]),
            dispersion_of_products=_variance(bins, sums[0], sums[1]) / (sums[0] / bins),
            dispersion_of_bytes=_variance(bins, sums[2], sums[3]) / mean_volume / mean_size if mean_volume else 0.0,
        )

    def relative_variance(self) -> tuple[int, float]:
        """The number of whole bins, and the variance of their counts over the squared mean."""
        if not self._number:
            return 0, 0.0
        return self._number, _variance(self._number, self._sums[0], self._sums[1]) / (
            self._sums[0] / self._number
        ) ** 2

    def peak_bytes(self) -> float:
        return max(self._peak, self._volume)

    def _close(self, counts: Floats, volumes: Floats) -> None:
        if len(counts):
            self._used += int(np.count_nonzero(counts))
            self._sums += [counts.sum(), (counts**2).sum(), volumes.sum(), (volumes**2).sum()]
            self._peak = max(self._peak, float(volumes.max()))

    def _whole(self, span_s: float) -> tuple[int, Floats]:
        """Bins and sums; of a few bins, a last one shorter than half is left out as unrepresentative."""
        cut_short = span_s - self._number * self._width_s < self._width_s / 2
        if cut_short and 1 <= self._number < MANY_BINS:
            return self._number, self._sums
        still_open = np.array([self._count, self._count**2, self._volume, self._volume**2])
        return self._number + 1, self._sums + still_open


class _Bursts:
    def __init__(self) -> None:
        self._bursts = 0
        self._products = 0
        self._length_s = 0.0
        self._open_bytes = 0.0
        self._largest = 0.0

    def add(self, gaps_s: Floats, size_bytes: Floats, *, first: bool) -> None:
        """`gaps_s` has the gap before each product, without one before the very first."""
        breaks = np.flatnonzero(gaps_s > BURST_SPLIT_S) + (1 if first else 0)
        starts = np.concatenate([[0], breaks]).astype(np.int64)
        volumes = np.add.reduceat(size_bytes, np.minimum(starts, len(size_bytes) - 1))
        if not first and len(breaks) and breaks[0] == 0:
            volumes[0] = 0.0
        volumes[0] += self._open_bytes
        self._largest = max(self._largest, float(volumes.max()))
        self._open_bytes = float(volumes[-1])
        self._bursts += len(breaks) + (1 if first else 0)
        self._products += len(size_bytes)
        self._length_s += float(gaps_s[gaps_s <= BURST_SPLIT_S].sum())

    def figures(self) -> BurstFigures:
        bursts = max(self._bursts, 1)
        return BurstFigures(
            split_s=BURST_SPLIT_S,
            bursts=self._bursts,
            mean_products=self._products / bursts,
            mean_length_s=self._length_s / bursts,
            largest_bytes=int(self._largest),
        )


class _Hours:
    def __init__(self) -> None:
        self._products, self._bytes = np.zeros(24), np.zeros(24)

    def add(self, at_us: npt.NDArray[np.int64], size_bytes: Floats) -> None:
        hour = at_us // HOUR_US % 24
        self._products += np.bincount(hour, minlength=24)
        self._bytes += np.bincount(hour, weights=size_bytes, minlength=24)

    def figures(self, first_us: int, last_us: int) -> tuple[HourFigures, ...]:
        seconds = _seconds_by_hour(first_us, last_us)
        return tuple(
            HourFigures(
                hour_utc=hour,
                seconds=seconds[hour],
                products=int(self._products[hour]),
                bytes=int(self._bytes[hour]),
                mean_bps=float(self._bytes[hour]) * 8 / max(seconds[hour], SHORTEST_SPAN_S),
            )
            for hour in range(24)
            if self._products[hour] or seconds[hour] > 0
        )


def _seconds_by_hour(first_us: int, last_us: int) -> list[float]:
    """The time of the stream at each hour of the day."""
    days, rest_us = divmod(last_us - first_us, 24 * HOUR_US)
    seconds = [days * 3600.0] * 24
    at_us = first_us
    while rest_us > 0:
        step_us = min(HOUR_US - at_us % HOUR_US, rest_us)
        seconds[at_us // HOUR_US % 24] += step_us / 1e6
        at_us, rest_us = at_us + step_us, rest_us - step_us
    return seconds


def _hurst(relative: dict[int, tuple[int, float]]) -> float | None:
    """Aggregated variance: the variance of a bin's mean decreases with the width to the power 2H - 2."""
    points = [
        (math.log(width), math.log(variance))
        for width, (bins, variance) in relative.items()
        if bins >= BINS_FOR_A_VARIANCE and variance > 0
    ]
    if len(points) < 2:
        return None
    widths, variances = np.array(points)[:, 0], np.array(points)[:, 1]
    slope = float(np.polyfit(widths, variances, 1)[0])
    return min(max(1 + slope / 2, 0.0), 1.0)


def _quantiles(histogram: LogHistogram) -> dict[str, float]:
    return {name: histogram.quantile(share) for name, share in QUANTILES.items()} if histogram.count else {}


def _variance(count: float, total: float, squares: float) -> float:
    return max(squares / count - (total / count) ** 2, 0.0)


def _variation(count: float, total: float, squares: float) -> float:
    return math.sqrt(_variance(count, total, squares)) / (total / count) if count and total else 0.0


WIDTHS_S = (1, 10, 60, 600, 3600)
SILENCES_S = (0.1, 1.0, 10.0, 30.0, 60.0)
QUANTILES = {"p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
BURST_SPLIT_S = 1.0
SHORTEST_SPAN_S = 1.0
BINS_FOR_A_VARIANCE = 30
FEWEST_BINS, MANY_BINS = 2, 30
HOUR_US = 3_600_000_000
