"""Burstiness: hand-computed figures, the recorded NGRID hour, and live windows against exact times."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.recordings.traces import Arrival
from downburst_scheduler.figures.traffic import Arrivals, FeedWindow, TrafficStatistics
from unit.scheduler.exact import statistics_of
from unit.scheduler.feeds import arrivals, ngrid_hour

FIVE = arrivals((0.0, 1000), (0.5, 3000), (1.2, 2000), (4.0, 2000), (10.0, 2000))


def filled(seconds: list[list[int]], *, window_s: float = 300) -> FeedWindow:
    window = FeedWindow(window_s)
    for sizes in seconds:
        window.add(seconds=1.0, products=len(sizes), size_bytes=sum(sizes), sizes=sizes[:64])
    return window


def live(recorded: Arrivals, *, window_s: float) -> FeedWindow:
    """The recorded arrivals as the node would count them."""
    seconds: list[list[int]] = [[] for _ in range(round(recorded.span_s))]
    for at_s, size in zip(recorded.at_s, recorded.size_bytes, strict=True):
        seconds[int(at_s)].append(int(size))
    return filled(seconds, window_s=window_s)


def first_hour(recorded: Arrivals) -> Arrivals:
    """The recording without its last half second, which would fill a bin of its own."""
    inside = recorded.at_s < 3600
    return Arrivals(recorded.at_s[inside], recorded.size_bytes[inside], 3600.0)


def test_hand_computed_volume_and_rates() -> None:
    seen = statistics_of(FIVE)
    assert (seen.products, seen.bytes, seen.span_s) == (5, 10_000, 10.0)
    assert seen.mean_bps == 8_000
    assert seen.widths[1].peak_bps == 32_000
    assert seen.widths[1].peak_to_mean == 4.0
    assert seen.widths[10].peak_bps == 6_400
    assert 60 not in seen.widths, "ten seconds say nothing about minutes"


def test_hand_computed_silence_by_bins_by_gaps_and_by_time() -> None:
    seen = statistics_of(FIVE)
    assert seen.silent_share == pytest.approx(7 / 11)
    over_one, over_ten, over_sixty = seen.silence
    assert over_one.share_of_gaps == 2 / 4
    assert over_one.share_of_time == pytest.approx(8.8 / 10)
    assert over_ten.share_of_gaps == over_sixty.share_of_time == 0


def test_hand_computed_dispersion_and_sizes() -> None:
    seen = statistics_of(FIVE)
    # Counts 2 1 0 0 1 0 0 0 0 0 1: mean 5/11, variance 7/11 - (5/11)^2 = 52/121.
    assert seen.widths[1].dispersion == pytest.approx(52 / 55)
    assert seen.size_quantiles_bytes["p50"] == 2000
    assert seen.size_quantiles_bytes["max"] == 3000
    assert seen.size_quantiles_bytes["mean"] == 2000


def test_the_recorded_hour_gives_the_published_figures() -> None:
    seen = statistics_of(ngrid_hour())
    assert seen.products == 28_166
    assert seen.bytes == pytest.approx(5.55e9, rel=0.001)
    assert seen.mean_bps == pytest.approx(12.3e6, rel=0.005)
    assert [seen.widths[width].peak_to_mean for width in (1, 10, 60)] == pytest.approx([36, 5.0, 2.2], rel=0.02)
    assert [seen.widths[width].dispersion for width in (1, 10, 60)] == pytest.approx([21, 97, 176], rel=0.005)
    assert seen.silence[0].share_of_time == pytest.approx(0.52, abs=0.005)
    assert seen.size_quantiles_bytes["p50"] == pytest.approx(39_000, rel=0.005)
    assert seen.size_quantiles_bytes["max"] == pytest.approx(53.9e6, rel=0.001)


def test_a_live_window_over_the_recorded_hour_agrees_with_the_exact_times() -> None:
    recorded = first_hour(ngrid_hour())
    exact, seen = statistics_of(recorded), live(recorded, window_s=3600).statistics()
    assert (seen.products, seen.bytes) == (exact.products, exact.bytes)
    assert seen.mean_bps == pytest.approx(exact.mean_bps, rel=0.001)
    assert seen.silent_share == exact.silent_share
    assert seen.widths[1].dispersion == exact.widths[1].dispersion
    for width in (10, 60):
        assert seen.widths[width].peak_to_mean == pytest.approx(exact.widths[width].peak_to_mean, rel=0.001)
    assert 0 < seen.silence[0].share_of_time <= exact.silence[0].share_of_time, "bins give a lower bound"


def test_nothing_has_figures_of_nothing() -> None:
    for seen in (
        statistics_of(Arrivals.of_trace([])),
        FeedWindow(60).statistics(),
        filled([[], [], []]).statistics(),
    ):
        assert (seen.products, seen.mean_bps, seen.widths, seen.size_quantiles_bytes) == (0, 0.0, {}, {})
    assert filled([[], []]).statistics().silent_share == 1.0


def test_a_single_product_has_a_rate() -> None:
    seen = statistics_of(Arrivals.of_trace([Arrival(1_000, 0)]))
    assert seen.mean_bps == 8_000


def test_the_window_forgets_the_oldest_seconds() -> None:
    window = filled([[1_000_000]] * 5 + [[10]] * 20, window_s=20)
    seen = window.statistics()
    assert (seen.products, seen.bytes, seen.span_s) == (20, 200, 20)


def test_memory_is_bounded_whatever_the_node_says() -> None:
    window = FeedWindow(10)
    window.add(seconds=1e6, products=10**6, size_bytes=10**9, sizes=[1000] * 10_000)
    assert len(window._bins) == 10
    assert all(len(one.sizes) <= 64 for one in window._bins)


def test_short_counts_wait_until_they_make_a_second() -> None:
    window = FeedWindow(60)
    for _ in range(10):
        window.add(seconds=0.3, products=1, size_bytes=100, sizes=[100])
    assert window.products == 10
    assert window.seconds == pytest.approx(3.0)
    assert window.statistics().silent_share == 0


def test_several_seconds_at_once_are_spread() -> None:
    window = FeedWindow(60)
    window.add(seconds=4.0, products=8, size_bytes=800, sizes=[100] * 8)
    seen = window.statistics()
    assert (seen.products, seen.bytes, seen.span_s, seen.silent_share) == (8, 800, 4.0, 0.0)
    assert seen.widths[1].peak_to_mean == 1.0


def test_rates_are_those_of_the_wire_also_when_seconds_are_not_quite_seconds() -> None:
    window = FeedWindow(60)
    for _ in range(10):
        window.add(seconds=1.25, products=1, size_bytes=1_000, sizes=[1_000])
    assert window.statistics().mean_bps == pytest.approx(1_000 * 8 / 1.25)


seconds_of_sizes = st.lists(st.lists(st.integers(0, 10**7), max_size=100), max_size=30)


@given(seconds_of_sizes)
def test_a_window_plays_back_all_its_products_in_order(seconds: list[list[int]]) -> None:
    window = filled(seconds)
    played = window.arrivals()
    assert len(played.at_s) == sum(len(sizes) for sizes in seconds)
    assert played.size_bytes.sum() == pytest.approx(sum(sum(sizes) for sizes in seconds))
    assert bool(np.all(np.diff(played.at_s) >= 0))
    assert bool(np.all(played.at_s < max(len(seconds), 1)))


@given(st.lists(st.tuples(st.floats(0, 300), st.integers(0, 10**8)), min_size=1, max_size=50))
def test_figures_stay_inside_their_bounds(products: list[tuple[float, float]]) -> None:
    seen: TrafficStatistics = statistics_of(arrivals(*sorted(products)))
    assert 0 <= seen.silent_share <= 1
    assert all(0 <= one.share_of_gaps <= 1 and 0 <= one.share_of_time <= 1 + 1e-9 for one in seen.silence)
    peaks = [seen.widths[width].peak_bps for width in sorted(seen.widths)]
    assert all(wide <= narrow * (1 + 1e-9) for narrow, wide in pairwise(peaks))
