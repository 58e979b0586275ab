"""Burstiness of a feed: statistics over a window of arrivals, live from one-second bins and offline from a trace.

Rates are product bits per real second, as on the wire. When a trace is played `time_scale` times faster, only the
windows shrink: 60 s of the trace are 60 / time_scale real seconds, and the rates in them rise by the same factor.

Times inside a bin are unknown; live windows space a bin's products evenly, and their silence is a lower bound (a run
of k empty bins is a gap of at least k seconds).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from downburst.recordings.traces import Arrival

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Products in order of time: the arrival of each, in seconds from the start of the span, and its size."""

    at_s: Floats
    size_bytes: Floats
    span_s: float

    @classmethod
    def of_trace(cls, trace: Iterable[Arrival]) -> Self:
        """The arrivals of a trace, from its first product to its last."""
        pairs = np.array([(arrival.at_us, arrival.size_bytes) for arrival in trace], dtype=np.int64).reshape(-1, 2)
        if len(pairs) == 0:
            return cls(np.empty(0), np.empty(0), 0.0)
        at_s = (pairs[:, 0] - pairs[0, 0]) / 1e6
        return cls(at_s, pairs[:, 1].astype(np.float64), max(float(at_s[-1]), 1.0))

    @property
    def mean_bps(self) -> float:
        """Product bits per second over the span."""
        return float(self.size_bytes.sum()) * 8 / self.span_s if self.span_s else 0.0


@dataclass(frozen=True, slots=True)
class Silence:
    """Gaps between products longer than `longer_than_s`: few of the gaps may hold most of the time."""

    longer_than_s: float
    share_of_gaps: float
    share_of_time: float


@dataclass(frozen=True, slots=True)
class WidthStatistics:
    """Burstiness seen through bins of one width."""

    peak_bps: float
    peak_to_mean: float
    dispersion: float
    """Variance over mean of the number of products in a bin: 1 for independent arrivals, more for bursts."""


@dataclass(frozen=True, slots=True)
class TrafficStatistics:
    """The statistics of a window of arrivals; widths longer than the window are left out."""

    products: int
    bytes: int
    span_s: float
    mean_bps: float
    silent_share: float
    """Share of one-second bins without a product."""
    widths: dict[int, WidthStatistics]
    silence: tuple[Silence, ...]
    size_quantiles_bytes: dict[str, float]


class FeedWindow:
    """The last so many seconds of one feed, in bounded memory: a bin a second with at most 64 sizes each.

    The busiest window of each eighth of a day is kept as well.
    """

    def __init__(self, window_s: float, day_s: float = 86_400.0) -> None:
        self._bins: deque[_Bin] = deque(maxlen=max(round(window_s), 1))
        self._open = _Bin.empty()
        self._day_s = day_s
        self._age_s = 0.0
        self._looked_s = 0.0
        self._busy: dict[int, _Busy] = {}

    def add(self, *, seconds: float, products: int, size_bytes: int, sizes: Sequence[int]) -> None:
        """Counts the arrivals of `seconds`; less than half a second waits for more, several are spread evenly."""
        self._open = self._open.with_more(seconds, products, size_bytes, sizes)
        whole = round(self._open.seconds)
        if self._open.seconds < 0.5 or whole < 1:
            return
        self._bins.extend(self._open.split(whole, keep=self._bins.maxlen or whole))
        self._age_s += self._open.seconds
        self._open = _Bin.empty()
        if self._age_s - self._looked_s >= (self._bins.maxlen or 1) * STEP_OF_WINDOW:
            self._keep_busiest()

    @property
    def seconds(self) -> float:
        """The time covered by the window."""
        return sum(one.seconds for one in self._bins)

    @property
    def products(self) -> int:
        """The number of products in the window."""
        return sum(one.products for one in self._bins)

    def statistics(self) -> TrafficStatistics:
        """The window's figures."""
        products = np.array([one.products for one in self._bins], dtype=np.float64)
        volume = np.array([one.bytes for one in self._bins], dtype=np.float64)
        sizes = np.concatenate([np.empty(0), *(one.sampled() for one in self._bins)])
        span_s = self.seconds
        return TrafficStatistics(
            products=int(products.sum()),
            bytes=int(volume.sum()),
            span_s=span_s,
            mean_bps=float(volume.sum()) * 8 / span_s if span_s else 0.0,
            silent_share=_empty_share(products),
            widths=_widths(_trimmed(products), _trimmed(volume), span_s),
            silence=_silence_of_bins(products),
            size_quantiles_bytes=_size_quantiles(sizes),
        )

    def arrivals(self) -> Arrivals:
        """The window as products to play through a model; a bin's samples stand for all its products."""
        if not self._bins:
            return Arrivals(np.empty(0), np.empty(0), 0.0)
        starts_s = np.cumsum([0.0, *(one.seconds for one in self._bins)])
        times, sizes = [np.empty(0)], [np.empty(0)]
        for start_s, one in zip(starts_s[:-1], self._bins, strict=True):
            times.append(start_s + np.arange(one.products) * (one.seconds / max(one.products, 1)))
            sizes.append(one.sampled())
        return Arrivals(np.concatenate(times), np.concatenate(sizes), float(starts_s[-1]))

    def busiest(self) -> tuple[Arrivals, float]:
        """The arrivals of the window with the most bytes within the last day, and the time since its end."""
        kept = [one for one in self._busy.values() if self._age_s - one.ended_s <= self._day_s]
        most = max(kept, key=lambda one: one.bytes, default=None)
        if most is None or most.bytes <= sum(one.bytes for one in self._bins):
            return self.arrivals(), 0.0
        return most.arrivals, self._age_s - most.ended_s

    def _keep_busiest(self) -> None:
        self._looked_s = self._age_s
        part_s, volume = self._day_s / PARTS_OF_DAY, sum(one.bytes for one in self._bins)
        part = int(self._age_s / part_s)
        before = self._busy.get(part)
        if volume and (before is None or volume > before.bytes):
            self._busy[part] = _Busy(self._age_s, volume, self.arrivals())
        for old in [one for one in self._busy if one < part - PARTS_OF_DAY]:
            del self._busy[old]


@dataclass(frozen=True, slots=True)
class _Busy:
    ended_s: float
    bytes: int
    arrivals: Arrivals


@dataclass(frozen=True, slots=True)
class _Bin:
    seconds: float
    products: int
    bytes: int
    sizes: tuple[int, ...]

    @classmethod
    def empty(cls) -> Self:
        return cls(0.0, 0, 0, ())

    def with_more(self, seconds: float, products: int, size_bytes: int, sizes: Sequence[int]) -> "_Bin":
        kept = (*self.sizes, *sizes)[-SAMPLES_PER_BIN:]
        return _Bin(self.seconds + seconds, self.products + products, self.bytes + size_bytes, kept)

    def split(self, parts: int, *, keep: int) -> Iterable["_Bin"]:
        """Cuts the bin into equal parts, and yields the last `keep` of them."""
        for part in range(max(parts - keep, 0), parts):
            products = _share(self.products, part, parts)
            sizes = self.sizes[part::parts] if self.products >= parts else self.sizes
            yield _Bin(self.seconds / parts, products, _share(self.bytes, part, parts), sizes)

    def sampled(self) -> Floats:
        """One size per product: the samples in turn, scaled so that they add up to the bin's bytes."""
        if self.products == 0:
            return np.empty(0)
        if not self.sizes or sum(self.sizes) == 0:
            return np.full(self.products, self.bytes / self.products)
        sizes = np.resize(np.array(self.sizes, dtype=np.float64), self.products)
        total = sizes.sum()
        return sizes * (self.bytes / total) if total else np.full(self.products, self.bytes / self.products)


def _share(count: int, part: int, parts: int) -> int:
    return count * (part + 1) // parts - count * part // parts


def _empty_share(products: Floats) -> float:
    return float((products == 0).mean()) if len(products) else 0.0


def _trimmed(values: Floats) -> dict[int, Floats]:
    """Whole bins of each width up to the last second."""
    return {width: values[len(values) % width :].reshape(-1, width).sum(axis=1) for width in WIDTHS_S}


def _widths(products: dict[int, Floats], volume: dict[int, Floats], span_s: float) -> dict[int, WidthStatistics]:
    mean_bps = float(volume[1].sum()) * 8 / span_s if span_s else 0.0
    found = {}
    for width in WIDTHS_S:
        if round(span_s) < width or len(volume[width]) == 0 or mean_bps == 0:
            continue
        peak_bps = float(volume[width].max()) * 8 / width
        counts = products[width]
        dispersion = float(counts.var() / counts.mean()) if counts.mean() else 0.0
        found[width] = WidthStatistics(peak_bps, peak_bps / mean_bps, dispersion)
    return found


def _silence_of_bins(products: Floats) -> tuple[Silence, ...]:
    """Runs of empty bins between products, against the number of gaps and the whole time."""
    busy = np.flatnonzero(products)
    runs_s = np.diff(busy).astype(np.float64) - 1
    gaps = max(products.sum() - 1, 1)
    return tuple(
        Silence(
            longer_than_s,
            share_of_gaps=float((runs_s >= longer_than_s).sum() / gaps),
            share_of_time=float(runs_s[runs_s >= longer_than_s].sum() / max(len(products), 1)),
        )
        for longer_than_s in SILENCES_S
    )


def _size_quantiles(sizes: Floats) -> dict[str, float]:
    if len(sizes) == 0:
        return {}
    values = np.quantile(sizes, [0.1, 0.5, 0.9, 0.99, 1.0])
    return dict(zip(("p10", "p50", "p90", "p99", "max"), map(float, values), strict=True)) | {
        "mean": float(sizes.mean())
    }


WIDTHS_S = (1, 10, 60)
SILENCES_S = (1.0, 10.0, 60.0)
STEP_OF_WINDOW = 0.25
"""Windows that overlap so far are compared: a burst is never cut by more than this share."""
PARTS_OF_DAY = 8
SAMPLES_PER_BIN = 64
"""The number that the node sends in a second."""
