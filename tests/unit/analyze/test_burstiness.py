"""Figures of a stream: the published hour, hand-computed cases, a reference that sees the whole, and any chunking."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downburst_analyze.burstiness import Burstiness, FeedFigures
from downburst_scheduler.figures.traffic import Arrivals
from unit.scheduler.feeds import ngrid_hour

if TYPE_CHECKING:
    from downburst_scheduler.figures.histograms import Floats

MIDNIGHT_US = 1_434_326_400_000_000
Products = list[tuple[float, float]]


def figures(products: Products, *, pieces: int = 1) -> FeedFigures:
    at_us = np.array([round(at * 1e6) + MIDNIGHT_US for at, _ in products], dtype=np.int64)
    sizes: Floats = np.array([size for _, size in products], dtype=np.float64)
    seen = Burstiness()
    for times, volumes in zip(np.array_split(at_us, pieces), np.array_split(sizes, pieces), strict=True):
        seen.add(times, volumes)
    return seen.figures()


def of(recorded: Arrivals, *, pieces: int = 1) -> FeedFigures:
    return figures(list(zip(recorded.at_s + 0.009, recorded.size_bytes, strict=True)), pieces=pieces)


HOUR: list[tuple[str, Any, float]] = [
    ("products", lambda seen: seen.products, 28_166),
    ("volume", lambda seen: seen.bytes, 5.55e9),
    ("mean rate", lambda seen: seen.mean_bps, 12.3e6),
    ("size p10", lambda seen: seen.sizes.quantiles_bytes["p10"], 14.1e3),
    ("size p50", lambda seen: seen.sizes.quantiles_bytes["p50"], 39.1e3),
    ("size mean", lambda seen: seen.sizes.mean_bytes, 197e3),
    ("size p90", lambda seen: seen.sizes.quantiles_bytes["p90"], 357e3),
    ("size p99", lambda seen: seen.sizes.quantiles_bytes["p99"], 2.2e6),
    ("size max", lambda seen: seen.sizes.quantiles_bytes["max"], 53.9e6),
    ("log size mean", lambda seen: seen.sizes.log_mean, 10.91),
    ("log size sd", lambda seen: seen.sizes.log_deviation, 1.42),
    ("tail exponent", lambda seen: seen.sizes.tail_exponent_above_p90, 0.91),
    ("bytes in the top 1 %", lambda seen: seen.sizes.share_of_bytes_in_top_1_percent, 0.20),
    ("gap p50", lambda seen: seen.gap_quantiles_s["p50"], 0.008),
    ("gap p90", lambda seen: seen.gap_quantiles_s["p90"], 0.30),
    ("gap p99", lambda seen: seen.gap_quantiles_s["p99"], 1.86),
    ("gap max", lambda seen: seen.gap_quantiles_s["max"], 19.5),
    ("variation of gaps", lambda seen: seen.gap_variation, 3.46),
    ("idle time", lambda seen: seen.silence[1].share_of_time, 0.52),
    ("bursts", lambda seen: seen.bursts.bursts, 1_006),
    ("products in a burst", lambda seen: seen.bursts.mean_products, 28),
    ("length of a burst", lambda seen: seen.bursts.mean_length_s, 1.7),
    ("largest burst", lambda seen: seen.bursts.largest_bytes, 185e6),
    ("peak over mean, 1 s", lambda seen: seen.widths[1].peak_to_mean, 36),
    ("peak over mean, 10 s", lambda seen: seen.widths[10].peak_to_mean, 5.0),
    ("peak over mean, 60 s", lambda seen: seen.widths[60].peak_to_mean, 2.2),
    ("dispersion, 1 s", lambda seen: seen.widths[1].dispersion_of_products, 21),
    ("dispersion, 10 s", lambda seen: seen.widths[10].dispersion_of_products, 97),
    ("dispersion, 60 s", lambda seen: seen.widths[60].dispersion_of_products, 176),
]


@pytest.fixture(scope="module")
def hour() -> FeedFigures:
    return of(ngrid_hour(), pieces=7)


@pytest.mark.parametrize(("name", "figure", "published"), HOUR, ids=[row[0] for row in HOUR])
def test_the_recorded_hour_has_the_published_figures(
    hour: FeedFigures, name: str, figure: Any, published: float
) -> None:
    assert figure(hour) == pytest.approx(published, rel=0.02), name


def test_silence_tells_gaps_and_time_apart(hour: FeedFigures) -> None:
    over_a_second, over_ten = hour.silence[1], hour.silence[2]
    assert (over_a_second.gaps, over_ten.gaps, hour.silence[3].gaps) == (1005, 7, 0)
    assert over_a_second.share_of_gaps == pytest.approx(0.0357, rel=0.01), "few of the gaps"
    assert over_a_second.share_of_time == pytest.approx(0.52, rel=0.01), "half of the time"


def test_the_recorded_hour_remembers(hour: FeedFigures) -> None:
    assert hour.hurst is not None
    assert 0.65 < hour.hurst < 0.95
    growing = [hour.widths[width].dispersion_of_bytes for width in (1, 10, 60, 600)]
    assert growing == sorted(growing)
    assert growing[-1] > 50 * growing[0]


def test_independent_arrivals_have_no_memory() -> None:
    random = np.random.default_rng(5)
    times = np.cumsum(random.exponential(0.1, 36_000))
    seen = figures([(float(at), 1000.0) for at in times])
    assert seen.hurst == pytest.approx(0.5, abs=0.08)
    assert seen.widths[10].dispersion_of_products == pytest.approx(1, abs=0.25)


product_lists = st.lists(st.tuples(st.floats(0, 4000), st.integers(0, 10**8)), min_size=1, max_size=60)


@settings(max_examples=80, deadline=None)
@given(product_lists, st.integers(1, 9))
def test_the_figures_do_not_depend_on_the_pieces(products: list[tuple[float, int]], pieces: int) -> None:
    ordered: Products = [(at, float(size)) for at, size in sorted(products)]
    _same(asdict(figures(ordered)), asdict(figures(ordered, pieces=pieces)))


@settings(max_examples=80, deadline=None)
@given(product_lists)
def test_a_reference_that_sees_all_at_once_agrees(products: list[tuple[float, int]]) -> None:
    ordered: Products = [(at, float(size)) for at, size in sorted(products)]
    seen = figures(ordered)
    at_us = np.array([round(at * 1e6) for at, _ in ordered])
    since_s = (at_us - at_us[0]) / 1e6
    volumes = np.bincount(since_s.astype(int), weights=[size for _, size in ordered])
    counts = np.bincount(since_s.astype(int))
    if 1 in seen.widths:
        assert seen.widths[1].peak_bps == pytest.approx(volumes.max() * 8)
        assert seen.widths[1].empty_share == pytest.approx((counts == 0).mean())
    if 1 in seen.widths and len(counts) >= 30:
        assert seen.widths[1].dispersion_of_products == pytest.approx(counts.var() / counts.mean(), rel=1e-6)
    gaps = np.diff(since_s)
    assert seen.bursts.bursts == 1 + int((gaps > 1).sum())
    parts = np.split(np.array([size for _, size in ordered]), np.flatnonzero(gaps > 1) + 1)
    assert seen.bursts.largest_bytes == max(int(part.sum()) for part in parts)
    assert sum(hour.products for hour in seen.by_hour) == len(ordered)


def test_hours_of_the_day_are_those_of_the_clock() -> None:
    seen = figures([(3_500.0, 100.0), (3_700.0, 700.0), (90_000.0, 700.0)])
    assert [(one.hour_utc, one.products, one.bytes) for one in seen.by_hour][:2] == [(0, 1, 100), (1, 2, 1400)]
    assert seen.by_hour[0].seconds == pytest.approx(100 + 3_600), "the end of one day and all of the next"
    assert sum(one.seconds for one in seen.by_hour) == pytest.approx(86_500)


def test_the_worst_hour_is_known_after_two() -> None:
    busy = [(float(at), 10.0 if at < 3600 else 30.0) for at in range(7200)]
    assert figures(busy).worst_hour_over_mean is None, "a second short of two hours"
    assert figures([*busy, (7200.0, 30.0)]).worst_hour_over_mean == pytest.approx(1.5, rel=0.01)


def test_a_year_of_silence_costs_no_memory() -> None:
    seen = figures([(0.0, 1e6), (3.15e7, 1e6)])
    assert seen.widths[1].empty_share == pytest.approx(1, abs=1e-6)
    assert seen.silence[-1].share_of_time == pytest.approx(1)


def test_nothing_and_little_have_figures() -> None:
    assert Burstiness().figures().products == 0
    one = figures([(0.0, 8000.0)])
    assert (one.mean_bps, one.widths, one.bursts.bursts) == (64_000, {}, 1)


def _same(first: Any, second: Any) -> None:
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for key in first:
            _same(first[key], second[key])
    elif isinstance(first, (list, tuple)):
        for one, other in zip(first, second, strict=True):
            _same(one, other)
    elif first is None or second is None:
        assert first is second
    else:
        assert first == pytest.approx(second, rel=1e-6, abs=1e-6)
