"""Schedules of a source of load: the products that it puts into the hub, and their times."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Planned:
    """A product that is due some time after the beginning."""

    at_us: int
    feed: str
    size_bytes: int
    product_id: str


def steady(feed: str, size_bytes: int, *, per_s: float, seconds: float) -> Iterator[Planned]:
    """Equal products in equal steps."""
    for number in range(round(per_s * seconds)):
        yield Planned(round(number * 1e6 / per_s), feed, size_bytes, f"steady {size_bytes} {number:08d}")


def at_random(feed: str, size_bytes: int, *, products: int, seconds: float, seed: int = 1) -> Iterator[Planned]:
    """Equal products that are independent of each other: a Poisson process of which the number is given."""
    random = np.random.default_rng(seed)
    for number, at_s in enumerate(np.sort(random.uniform(0, seconds, products))):
        yield Planned(round(at_s * 1e6), feed, size_bytes, f"random {size_bytes} {number:08d}")


def bursts(feed: str, kinds: Iterable[tuple[int, int]], *, count: int, every_s: float) -> Iterator[Planned]:
    """Bursts of (products, bytes of each), the kinds in turn; a burst is due all at once."""
    kinds = tuple(kinds)
    for burst in range(count):
        products, size_bytes = kinds[burst % len(kinds)]
        for number in range(products):
            yield Planned(round(burst * every_s * 1e6), feed, size_bytes, f"burst {burst:04d} {number:06d}")


def together(*schedules: Iterable[Planned]) -> Iterator[Planned]:
    """Several schedules at once."""
    return merge(*schedules, key=lambda product: product.at_us)


def write(path: Path, planned: Iterable[Planned]) -> Path:
    """Write the schedule as `downburst-load` reads it."""
    with path.open("w") as out:
        out.writelines(
            f"{product.at_us} {product.feed} {product.size_bytes} {product.product_id}\n" for product in planned
        )
    return path
