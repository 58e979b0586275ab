"""Synthetic feeds from statistics, so that a demonstration or a load test needs no download.

NGRID follows the published hour of 15 June 2015 (28,166 products, 12.3 Mb/s): most products are small, one in ten is
about a megabyte, one in ten thousand is tens of megabytes; sizes resemble those of their neighbours; bursts alternate
with silences of a second or two, and one burst in twenty lasts a quarter of a minute. The other feeds represent the
usual companions at a hub: steady radar chunks, a comb of radar products, a trickle of text, rare warnings.

The same seed gives the same products. Time is in seconds since the feed began; nothing here reads a clock.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import count, islice
from statistics import NormalDist

import numpy as np

from downburst.domain.feeds import FeedClass


@dataclass(frozen=True, slots=True)
class GeneratedProduct:
    """A product that is due `at_s` seconds after its feed began."""

    at_s: float
    product_id: str
    size_bytes: int


Products = Iterator[GeneratedProduct]


@dataclass(frozen=True, slots=True)
class GeneratedFeed:
    """A feed with the statistics of a real one."""

    name: str
    feed_class: FeedClass
    make: Callable[[np.random.Generator], Products]

    def products(self, *, seed: int) -> Products:
        """An endless stream in time order; feeds with the same seed are independent of each other."""
        return self.make(np.random.default_rng([seed, *self.name.encode()]))


def built_in_feeds() -> tuple[GeneratedFeed, ...]:
    """The feeds of a demonstration, the busiest first."""
    return (
        GeneratedFeed("NGRID", FeedClass.GRID, ngrid),
        GeneratedFeed("NEXRAD2", FeedClass.OBSERVATION, nexrad2),
        GeneratedFeed("NEXRAD3", FeedClass.OBSERVATION, nexrad3),
        GeneratedFeed("IDS|DDPLUS", FeedClass.OBSERVATION, text),
        GeneratedFeed("WARNINGS", FeedClass.WARNING, warnings),
    )


def ngrid(random: np.random.Generator) -> Products:
    """Model grids from the satellite broadcast: 12 Mb/s on average, in bursts."""
    sizes = _NGRID_SIZES.stream(random)
    for number, at_s in enumerate(_ngrid_times(random)):
        model = _MODELS[number // 40 % len(_MODELS)]
        field = f"{model}/#212/201506150000F{number % 85:03d}/TMP/500 hPa PRES"
        yield GeneratedProduct(at_s, f"YZCA98 KWBG 150000 !grib2/ncep/{field}! {number:07d}", next(sizes))


def nexrad2(random: np.random.Generator, *, radars: int = 20) -> Products:
    """Chunks of radar volumes: each radar sends one about every six seconds, all day long."""
    turns = [(random.uniform(0, _CHUNK_PERIOD_S), radar) for radar in range(radars)]
    heapify(turns)
    for number in count():
        at_s, radar = turns[0]
        size = int(random.lognormal(math.log(85_000), 0.45)) + 24
        name = f"L2-BZIP2/K{_letters(radar)}/20240418000000/{number // radars // 60 % 999:03d}/{number:07d}/I/V06/0"
        yield GeneratedProduct(at_s, name, size)
        heapreplace(turns, (at_s + _CHUNK_PERIOD_S * random.uniform(0.85, 1.15), radar))


def nexrad3(random: np.random.Generator) -> Products:
    """Radar products as a comb: every two seconds some tens of them within half a second."""
    number, tooth_s = 0, 0.0
    while True:
        products = max(1, round(random.normal(_TOOTH_PRODUCTS, 7)))
        for at_s in np.sort(random.uniform(0, 0.5, products)):
            size = min(int(random.lognormal(9.3, 1.15)) + 120, 300_000)
            name = f"SDUS5{number % 7} K{_letters(number % 150)} 112259 /pN0R{_letters(number % 150)} {number:07d}"
            yield GeneratedProduct(tooth_s + float(at_s), name, size)
            number += 1
        tooth_s += 1.9


def text(random: np.random.Generator) -> Products:
    """Bulletins of 1.5 kB on average, a dozen a second, independent of each other."""
    at_s = 0.0
    for number in count():
        at_s += random.exponential(1 / 12)
        size = min(int(random.lognormal(math.log(850), 1.05)) + 40, 60_000)
        yield GeneratedProduct(at_s, f"SAUS{number % 90:02d} K{_letters(number % 400)} 231200 {number:07d}", size)


def warnings(random: np.random.Generator) -> Products:
    """Warnings: each weather system sets off a handful."""
    number, at_s = 0, 0.0
    while True:
        at_s += random.exponential(6.0)
        for _ in range(1 + int(random.geometric(0.6))):
            at_s += random.uniform(0.05, 0.4)
            kind = _WARNING_KINDS[int(random.integers(len(_WARNING_KINDS)))]
            size = min(int(random.lognormal(7.6, 0.5)) + 200, 40_000)
            yield GeneratedProduct(at_s, f"{kind}5{number % 10} K{_letters(number % 120)} 231215 {number:06d}", size)
            number += 1


@dataclass(frozen=True, slots=True)
class SizeModel:
    """Sizes from observed quantiles, interpolated in the logarithm; each is correlated with its predecessor."""

    shares: tuple[float, ...]
    """From 0 to 1."""
    bytes_at: tuple[float, ...]
    """A share of the products stays below each."""
    likeness: float
    """Correlation of a size with its predecessor, on the normal scale."""

    def stream(self, random: np.random.Generator) -> Iterator[int]:
        """Sizes in bytes, without end."""
        noise = math.sqrt(1 - self.likeness**2)
        level = random.normal()
        while True:
            yield max(1, int(self.at_quantile(_NORMAL.cdf(level))))
            level = self.likeness * level + noise * random.normal()

    def at_quantile(self, quantile: float) -> float:
        """The size that a share of `quantile` of all products stays below."""
        upper = min(max(bisect_right(self.shares, quantile), 1), len(self.shares) - 1)
        low, high = self.shares[upper - 1], self.shares[upper]
        part = (quantile - low) / (high - low)
        size: float = self.bytes_at[upper - 1] ** (1 - part) * self.bytes_at[upper] ** part
        return size


def until(products: Products, *, seconds: float) -> Products:
    """The products due before `seconds`."""
    for product in products:
        if product.at_s >= seconds:
            return
        yield product


def _ngrid_times(random: np.random.Generator) -> Iterator[float]:
    at_s, mood = 0.0, 0.0
    while True:
        mood = 0.8 * mood + 0.6 * random.normal()
        yield at_s
        for gap_s in islice(_gaps_in_burst(random), _burst_products(random, mood=mood) - 1):
            at_s += gap_s
            yield at_s
        at_s += _silence_s(random)


def _burst_products(random: np.random.Generator, *, mood: float) -> int:
    """Mostly a dozen; one burst in twenty has hundreds, more often after large ones."""
    long_burst = random.random() < _LONG_BURSTS * math.exp(0.9 * mood - 0.405)
    if long_burst:
        return int(min(100 + random.lognormal(math.log(170), 1.1), 2_000))
    return 1 + int(random.poisson(13 * math.exp(0.35 * mood - 0.06)))


def _gaps_in_burst(random: np.random.Generator) -> Iterator[float]:
    """Mostly milliseconds, short gaps in runs, with a long tail below the second that would separate two bursts.

    Each burst has a density of its own: some arrive at the link's full rate.
    """
    level = random.normal()
    middle_s = 0.007 * math.exp(_DENSITY_SPREAD * random.normal())
    while True:
        level = _GAP_LIKENESS * level + math.sqrt(1 - _GAP_LIKENESS**2) * random.normal()
        gap_s = middle_s * math.exp((0.9 if level < 0 else 2.4) * level)
        if gap_s < 0.999:
            yield gap_s


def _silence_s(random: np.random.Generator) -> float:
    if random.random() < 0.03:
        return float(min(2.0 + random.exponential(4.0), 60.0))
    return float(1.0 + 0.99 * random.beta(2.2, 1.2))


def _letters(number: int) -> str:
    """Three capital letters that encode `number`, as in a station's name."""
    return "".join(chr(ord("A") + number // 26**place % 26) for place in (2, 1, 0))


_NORMAL = NormalDist()
_MODELS = ("NAM_84", "GFS_90", "RAP_130", "NAM_84", "RTMA_184")
_WARNING_KINDS = ("WFUS", "WUUS", "WWUS", "WGUS")
_CHUNK_PERIOD_S = 6.0
_TOOTH_PRODUCTS = 16
_LONG_BURSTS = 0.04
_GAP_LIKENESS = 0.85
_DENSITY_SPREAD = 0.9
_NGRID_QUANTILES = (
    (0, 217), (0.002, 240), (0.01, 1_430), (0.03, 6_330), (0.1, 14_100), (0.2, 22_800), (0.3, 30_300), (0.4, 33_000),
    (0.5, 39_100), (0.6, 55_300), (0.7, 79_600), (0.75, 96_100), (0.8, 120e3), (0.84, 243e3), (0.87, 290e3),
    (0.9, 357e3), (0.92, 453e3), (0.94, 1.18e6), (0.96, 1.37e6), (0.975, 1.77e6), (0.985, 2.03e6), (0.99, 2.21e6),
    (0.995, 3.05e6), (0.998, 4.43e6), (0.9995, 5.91e6), (0.9999, 7e6), (1, 53.9e6),
)  # fmt: skip
_NGRID_SIZES = SizeModel(
    shares=tuple(share for share, _ in _NGRID_QUANTILES),
    bytes_at=tuple(size for _, size in _NGRID_QUANTILES),
    likeness=0.7,
)
