"""Figures of arrivals whose times are known exactly, as a reference for live windows of one-second bins."""

import numpy as np

from downburst_scheduler.figures.traffic import (
    SILENCES_S,
    WIDTHS_S,
    Arrivals,
    Floats,
    Silence,
    TrafficStatistics,
    _empty_share,
    _size_quantiles,
    _widths,
)


def statistics_of(arrivals: Arrivals) -> TrafficStatistics:
    """The figures of recorded arrivals."""
    second = arrivals.at_s.astype(np.int64)
    products: Floats = np.bincount(second).astype(np.float64)
    volume: Floats = np.bincount(second, weights=arrivals.size_bytes).astype(np.float64)
    return TrafficStatistics(
        products=len(arrivals.at_s),
        bytes=int(arrivals.size_bytes.sum()),
        span_s=arrivals.span_s,
        mean_bps=arrivals.mean_bps,
        silent_share=_empty_share(products),
        widths=_widths(_padded(products), _padded(volume), arrivals.span_s),
        silence=_silence_of_gaps(np.diff(arrivals.at_s)),
        size_quantiles_bytes=_size_quantiles(arrivals.size_bytes),
    )


def _padded(values: Floats) -> dict[int, Floats]:
    """Bins of each width from the first second on; the last one may be cut short by the end."""
    return {
        width: np.concatenate([values, np.zeros(-len(values) % width)]).reshape(-1, width).sum(axis=1)
        for width in WIDTHS_S
    }


def _silence_of_gaps(gaps_s: Floats) -> tuple[Silence, ...]:
    total_s = gaps_s.sum()
    return tuple(
        Silence(
            longer_than_s,
            share_of_gaps=float((gaps_s > longer_than_s).mean()) if len(gaps_s) else 0.0,
            share_of_time=float(gaps_s[gaps_s > longer_than_s].sum() / total_s) if total_s else 0.0,
        )
        for longer_than_s in SILENCES_S
    )
