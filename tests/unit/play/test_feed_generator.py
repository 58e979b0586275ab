"""Generated feeds against the published statistics of the real ones."""

from collections.abc import Callable
from itertools import islice, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from downburst_app.play.generator import built_in_feeds, until

HOUR_S = 3600.0
SEEDS = range(5)
Numbers = NDArray[np.float64]


def hour_of(feed: str, *, seed: int) -> tuple[Numbers, Numbers]:
    generated = next(candidate for candidate in built_in_feeds() if candidate.name == feed)
    products = list(until(generated.products(seed=seed), seconds=HOUR_S))
    return np.array([product.at_s for product in products]), np.array(
        [float(product.size_bytes) for product in products]
    )


def bins(times: Numbers, width_s: float, weights: Numbers | None = None) -> Numbers:
    return np.asarray(np.histogram(times, np.arange(0, HOUR_S + 1e-9, width_s), weights=weights)[0], float)


def burst_products(times: Numbers) -> Numbers:
    ends = np.flatnonzero(np.diff(times) > 1)
    return np.diff(np.concatenate([[-1], ends, [len(times) - 1]])).astype(float)


def hill(sizes: Numbers) -> float:
    ordered = np.sort(sizes)
    tail = len(ordered) // 10
    return float(1 / np.log(ordered[-tail:] / ordered[-tail - 1]).mean())


def dispersion(width_s: float) -> Callable[[Numbers, Numbers], float]:
    return lambda times, _: float(bins(times, width_s).var() / bins(times, width_s).mean())


def peak_over_mean(width_s: float) -> Callable[[Numbers, Numbers], float]:
    return lambda times, sizes: float(bins(times, width_s, sizes).max() / bins(times, width_s, sizes).mean())


def quantile(share: float) -> Callable[[Numbers, Numbers], float]:
    return lambda _, sizes: float(np.quantile(sizes, share))


Statistic = Callable[[Numbers, Numbers], float]
NGRID: list[tuple[str, Statistic, float, float]] = [
    ("products", lambda times, _: float(len(times)), 28_166, 0.25),
    ("mean rate, Mb/s", lambda _, sizes: float(sizes.sum() * 8 / HOUR_S / 1e6), 12.3, 0.25),
    ("size p10", quantile(0.10), 14_100, 0.05),
    ("size p50", quantile(0.50), 39_080, 0.05),
    ("size mean", lambda _, sizes: float(sizes.mean()), 197_058, 0.10),
    ("size p90", quantile(0.90), 357_300, 0.10),
    ("size p99", quantile(0.99), 2_212_000, 0.10),
    ("log size mean", lambda _, sizes: float(np.log(sizes).mean()), 10.91, 0.02),
    ("log size sd", lambda _, sizes: float(np.log(sizes).std()), 1.42, 0.05),
    ("tail exponent", lambda _, sizes: hill(sizes), 0.91, 0.10),
    (
        "bytes in the top 1 %",
        lambda _, sizes: float(np.sort(sizes)[-len(sizes) // 100 :].sum() / sizes.sum()),
        0.2,
        0.25,
    ),
    ("gap p50, s", lambda times, _: float(np.median(np.diff(times))), 0.008, 0.60),
    ("gap p90, s", lambda times, _: float(np.quantile(np.diff(times), 0.9)), 0.30, 0.40),
    ("gap p99, s", lambda times, _: float(np.quantile(np.diff(times), 0.99)), 1.86, 0.10),
    ("variation of gaps", lambda times, _: float(np.diff(times).std() / np.diff(times).mean()), 3.5, 0.25),
    ("idle time", lambda times, _: float(np.diff(times)[np.diff(times) > 1].sum() / HOUR_S), 0.52, 0.20),
    ("bursts", lambda times, _: float(len(burst_products(times))), 1_006, 0.20),
    ("products in a burst", lambda times, _: float(burst_products(times).mean()), 28, 0.30),
    ("peak over mean, 1 s", peak_over_mean(1), 36, 0.45),
    ("peak over mean, 10 s", peak_over_mean(10), 5.0, 0.60),
    ("peak over mean, 60 s", peak_over_mean(60), 2.2, 0.40),
    ("dispersion, 1 s", dispersion(1), 21, 0.40),
    ("dispersion, 10 s", dispersion(10), 97, 0.55),
    ("dispersion, 60 s", dispersion(60), 170, 0.60),
]


@pytest.fixture(scope="module")
def hours() -> list[tuple[Numbers, Numbers]]:
    return [hour_of("NGRID", seed=seed) for seed in SEEDS]


@pytest.mark.parametrize(("name", "statistic", "published", "tolerance"), NGRID, ids=[row[0] for row in NGRID])
def test_ngrid_resembles_the_published_hour(
    hours: list[tuple[Numbers, Numbers]], name: str, statistic: Statistic, published: float, tolerance: float
) -> None:
    median = float(np.median([statistic(times, sizes) for times, sizes in hours]))
    assert median == pytest.approx(published, rel=tolerance), f"{name} over seeds {list(SEEDS)}"


def test_every_hour_of_ngrid_has_its_giants_but_none_beyond_the_largest_seen(
    hours: list[tuple[Numbers, Numbers]],
) -> None:
    largest = [sizes.max() for _, sizes in hours]
    assert max(largest) > 40e6
    assert all(5e6 < size <= 54e6 for size in largest)


def test_nexrad2_is_steady_chunks() -> None:
    times, sizes = hour_of("NEXRAD2", seed=1)
    assert sizes.mean() == pytest.approx(91_000, rel=0.1)
    assert dispersion(1)(times, sizes) < 1.2
    assert peak_over_mean(60)(times, sizes) < 1.3


def test_nexrad3_is_a_comb() -> None:
    times, sizes = hour_of("NEXRAD3", seed=1)
    assert np.median(sizes) == pytest.approx(11_180, rel=0.1)
    assert sizes.mean() == pytest.approx(20_823, rel=0.1)
    assert dispersion(1)(times, sizes) > 5
    assert np.diff(times)[np.diff(times) > 1].sum() / HOUR_S == pytest.approx(0.77, abs=0.08)


def test_text_is_small_and_independent() -> None:
    times, sizes = hour_of("IDS|DDPLUS", seed=1)
    assert sizes.mean() == pytest.approx(1_500, rel=0.1)
    assert len(times) == pytest.approx(44_000, rel=0.05)
    assert dispersion(60)(times, sizes) == pytest.approx(1, abs=0.6)


def test_warnings_are_rare_and_small() -> None:
    times, sizes = hour_of("WARNINGS", seed=1)
    assert 500 < len(times) < 4_000
    assert sizes.max() < 60_000


@pytest.mark.parametrize("feed", built_in_feeds(), ids=lambda feed: feed.name)
def test_a_seed_repeats_its_products_and_ids_are_never_used_twice(feed) -> None:  # type: ignore[no-untyped-def]
    once = list(islice(feed.products(seed=7), 3_000))
    assert once == list(islice(feed.products(seed=7), 3_000))
    assert once != list(islice(feed.products(seed=8), 3_000))
    assert len({product.product_id for product in once}) == len(once)
    assert all(earlier.at_s <= later.at_s for earlier, later in pairwise(once))
