"""The mix of 2024 has the volumes and counts that it claims."""

from itertools import takewhile

import pytest

from downburst_app.play.idd_mix import IDD_2024, MixedFeed, idd_mix

TEN_MINUTES_S = 600


def test_the_feeds_add_up_to_the_published_total() -> None:
    assert sum(feed.megabytes_per_hour for feed in IDD_2024) == 63_359
    assert sum(feed.products_per_hour for feed in IDD_2024) == 392_779


def test_the_mix_has_its_rate_and_volume_and_comes_in_order() -> None:
    products = list(takewhile(lambda pair: pair[1].at_s < TEN_MINUTES_S, idd_mix(seed=1)))
    assert len(products) / TEN_MINUTES_S == pytest.approx(109.1, rel=0.05)
    megabits_per_s = sum(product.size_bytes for _, product in products) * 8 / TEN_MINUTES_S / 1e6
    assert megabits_per_s == pytest.approx(141, rel=0.15)
    moments = [product.at_s for _, product in products]
    assert moments == sorted(moments)
    assert len({product.product_id for _, product in products}) == len(products)


@pytest.mark.parametrize("feed", IDD_2024, ids=lambda feed: feed.name)
def test_each_feed_has_its_mean_size(feed: MixedFeed) -> None:
    stream = feed.products(seed=5)
    sizes = [next(stream).size_bytes for _ in range(20_000)]
    assert sum(sizes) / len(sizes) == pytest.approx(feed.mean_bytes, rel=0.1)


def test_rate_and_size_are_multiplied() -> None:
    feed = IDD_2024[1]
    scaled = takewhile(lambda product: product.at_s < TEN_MINUTES_S, feed.products(seed=2, rate=0.5, size=0.1))
    sizes = [product.size_bytes for product in scaled]
    assert len(sizes) == pytest.approx(feed.products_per_hour / 6 / 2, rel=0.05)
    assert sum(sizes) / len(sizes) == pytest.approx(feed.mean_bytes / 10, rel=0.05)


def test_the_same_seed_gives_the_same_products() -> None:
    def first(seed: int) -> list[tuple[str, float, int]]:
        some = zip(range(50), idd_mix(seed=seed), strict=False)
        return [(feed.name, product.at_s, product.size_bytes) for _, (feed, product) in some]

    assert first(3) == first(3)
    assert first(3) != first(4)
