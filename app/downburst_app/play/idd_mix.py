"""The mix of feeds of a leading IDD host on 18 April 2024, synthesised from its published hourly figures.

393,000 products an hour (109/s), 63 GB an hour (141 Mb/s). Volumes and counts per feed are those of the Unidata
committee's status report; the list ends at GEM, so GEM represents all feeds below it except text, which has figures
of 2017. Sizes are lognormal about each feed's mean, arrivals are bursts at random moments; the number of products in
a burst and the spread of sizes are rough estimates from the known nature of each feed.

The same seed gives the same products. Time is in seconds since the mix began; nothing here reads a clock.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge

import numpy as np

from downburst.domain.feeds import FeedClass
from downburst_app.play.generator import GeneratedProduct, Products


@dataclass(frozen=True, slots=True)
class MixedFeed:
    """A feed by its hourly figures."""

    name: str
    feed_class: FeedClass
    megabytes_per_hour: float
    products_per_hour: float
    burst_products: float
    """Mean number of products in a burst."""
    spread: float
    """Standard deviation of the sizes' natural logarithm."""

    @property
    def mean_bytes(self) -> float:
        """Mean size of a product."""
        return self.megabytes_per_hour * 1e6 / self.products_per_hour

    def products(self, *, seed: int, rate: float = 1.0, size: float = 1.0) -> Products:
        """An endless stream in time order; `rate` multiplies the products per second, `size` their sizes."""
        random = np.random.default_rng([seed, *self.name.encode()])
        bursts_per_s = rate * self.products_per_hour / 3_600 / self.burst_products
        middle_bytes = size * self.mean_bytes * math.exp(-(self.spread**2) / 2)
        at_s, number = 0.0, 0
        while True:
            at_s += random.exponential(1 / bursts_per_s)
            for _ in range(int(random.geometric(1 / self.burst_products))):
                size_bytes = max(1, int(middle_bytes * math.exp(self.spread * random.normal())))
                yield GeneratedProduct(at_s, f"{self.name} 2024041812 {number:09d}", size_bytes)
                number += 1


def idd_mix(*, seed: int, rate: float = 1.0, size: float = 1.0) -> Iterator[tuple[MixedFeed, GeneratedProduct]]:
    """All feeds of the mix in one stream, in time order and without end."""

    def named(feed: MixedFeed) -> Iterator[tuple[MixedFeed, GeneratedProduct]]:
        return ((feed, product) for product in feed.products(seed=seed, rate=rate, size=size))

    return merge(*map(named, IDD_2024), key=lambda pair: pair[1].at_s)


IDD_2024 = (
    MixedFeed("SATELLITE", FeedClass.BULK, 15_264, 6_528, 4, 1.2),
    MixedFeed("NEXRAD2", FeedClass.OBSERVATION, 10_499, 109_734, 1, 0.45),
    MixedFeed("NIMAGE", FeedClass.BULK, 8_157, 7_478, 4, 1.2),
    MixedFeed("NGRID", FeedClass.GRID, 6_993, 66_519, 28, 1.3),
    MixedFeed("HDS", FeedClass.GRID, 4_517, 30_300, 10, 1.3),
    MixedFeed("FNEXRAD", FeedClass.OBSERVATION, 4_489, 8_558, 4, 1.0),
    MixedFeed("NEXRAD3", FeedClass.OBSERVATION, 3_815, 91_567, 16, 1.15),
    MixedFeed("EXP", FeedClass.GRID, 3_055, 2_542, 4, 1.3),
    MixedFeed("GEM", FeedClass.GRID, 6_502, 25_440, 20, 1.3),
    MixedFeed("IDS|DDPLUS", FeedClass.OBSERVATION, 68, 44_113, 2, 1.05),
)
