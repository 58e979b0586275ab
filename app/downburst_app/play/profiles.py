"""Whole feeds for load tests, after their published figures.

CONDUIT: 60 GB a day with 250 MB in the busiest minute, six times the mean; four model runs a day, trains of products
between silences, under one gap in a hundred longer than a second. NEXRAD2: 56 GB a day with 58 MB in the busiest
minute, steady chunks that follow the day's weather. SATELLITE: 6,528 images an hour of 2.3 MB, in the rhythm of
sectors that are scanned every one, five or ten minutes. Objects of 7.3 GB, and ten thousand notifications a second,
are levels of load rather than feeds.

The same seed gives the same products. Time is in seconds since the feed began; nothing here reads a clock.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import numpy as np

from downburst.domain.feeds import FeedClass
from downburst_app.play.generator import GeneratedFeed, GeneratedProduct, Products, nexrad2, ngrid, text, warnings


def profiles() -> dict[str, GeneratedFeed]:
    """Every profile by its name in commands."""
    return {
        "ngrid": GeneratedFeed("NGRID", FeedClass.GRID, ngrid),
        "conduit": GeneratedFeed("CONDUIT", FeedClass.GRID, conduit),
        "nexrad2": GeneratedFeed("NEXRAD2", FeedClass.OBSERVATION, nexrad2_network),
        "text": GeneratedFeed("IDS|DDPLUS", FeedClass.OBSERVATION, text),
        "warnings": GeneratedFeed("WARNINGS", FeedClass.WARNING, warnings),
        "satellite": GeneratedFeed("SATELLITE", FeedClass.BULK, satellite),
        "objects": GeneratedFeed("OBJECTS", FeedClass.BULK, large_objects),
        "notifications": GeneratedFeed("NOTIFICATIONS", FeedClass.OBSERVATION, notifications),
    }


def conduit(random: np.random.Generator) -> Products:
    """High-resolution model output: trains of fields during a run's release, and little in between."""
    at_s, number = 0.0, 0
    minutes = _conduit_minutes(random)
    minute, load = 0, next(minutes)
    while True:
        while at_s >= 60 * (minute + 1):
            minute, load = minute + 1, next(minutes)
        per_second = load * _CONDUIT_PER_SECOND
        mean_train = _TRAIN_OF_A_RUN if load > 1 else _TRAIN_BETWEEN_RUNS
        train = int(random.geometric(1 / mean_train))
        silence_s = mean_train * max(1 / per_second - _TRAIN_GAP_S, 0.0)
        sizes = random.lognormal(_CONDUIT_LOG_MEDIAN, _CONDUIT_SPREAD, train)
        for size, gap_s in zip(sizes, random.exponential(_TRAIN_GAP_S, train), strict=True):
            at_s += float(gap_s)
            field = f"data/nccf/com/gfs/prod/gfs.t{minute // 360 % 4 * 6:02d}z.pgrb2.0p25.f{number % 385:03d}"
            yield GeneratedProduct(at_s, f"{field} !grib2/ncep/GFS/#000/{number:08d}", max(1, int(size)))
            number += 1
        at_s += min(float(random.exponential(silence_s)), _LONGEST_SILENCE_S) if silence_s > 0 else 0.0


def nexrad2_network(random: np.random.Generator) -> Products:
    """Radar chunks of a country: steady within the hour, more of them during the afternoon's storms."""
    return _warped(nexrad2(random, radars=_RADARS), lambda at_s: _storms(at_s, random))


def satellite(random: np.random.Generator) -> Products:
    """Images by sector: some every minute, more every five, most every ten; each arrives during its scan."""
    number = 0
    for minute in count():
        batch: list[tuple[float, str]] = []
        for sector, every, images, scan_s in _SECTORS:
            if minute % every == 0:
                batch += [(float(at_s), sector) for at_s in random.uniform(0, scan_s, images)]
        for at_s, sector in sorted(batch):
            size = max(1, int(random.lognormal(_IMAGE_LOG_MEDIAN, _IMAGE_SPREAD)))
            yield GeneratedProduct(
                minute * 60.0 + at_s, f"OR_ABI-L1b-{sector}_G16_{minute:06d}_{number:09d}.nc", size
            )
            number += 1


def large_objects(random: np.random.Generator) -> Products:
    """Forecasts of 7.3 GB in one file, one every ten minutes: the load that a warning must be able to overtake."""
    for number in count():
        yield GeneratedProduct(
            number * 600.0, f"FOUR_v200_GFS_{number:06d}_f000_f240_06.nc", int(random.normal(7.334e9, 5e6))
        )


def notifications(random: np.random.Generator) -> Products:
    """Ten thousand a second of about a kilobyte, independent of each other: the role of a global cache."""
    at_s = 0.0
    for number in count():
        at_s += random.exponential(1e-4)
        yield GeneratedProduct(at_s, f"wis2/notification/{number:010d}", 900 + int(random.integers(300)))


def _conduit_minutes(random: np.random.Generator) -> Iterator[float]:
    """Each minute's load relative to the mean: two thirds of the bytes arrive in a quarter of the time."""
    for minute in count():
        active = minute % 360 >= _RUN_BEGINS_MINUTE
        noise = min(random.lognormal(-0.02, 0.2), 1.5)
        yield (2.7 if active else 0.433) * noise


def _storms(at_s: float, random: np.random.Generator) -> float:
    """Load relative to the mean, with its maximum in the evening (UTC) of a feed that begins at midnight."""
    return 1 + 0.38 * math.sin(2 * math.pi * (at_s / 86_400 - 0.65)) + random.normal(0, 0.02)


def _warped(products: Products, load: Callable[[float], float]) -> Products:
    """The same products with each minute's rate scaled: a minute at a load of 1.2 holds 72 s of the original."""
    minute, before_s, factor = 0, 0.0, load(0.0)
    for product in products:
        while product.at_s >= before_s + 60 * factor:
            before_s += 60 * factor
            minute += 1
            factor = load(60.0 * minute)
        yield replace(product, at_s=60.0 * minute + (product.at_s - before_s) / factor)


_CONDUIT_MEAN_BYTES = 90_000.0
_CONDUIT_SPREAD = 1.2
_CONDUIT_LOG_MEDIAN = math.log(_CONDUIT_MEAN_BYTES) - _CONDUIT_SPREAD**2 / 2
_CONDUIT_PER_SECOND = 60e9 / 86_400 / _CONDUIT_MEAN_BYTES
_TRAIN_OF_A_RUN, _TRAIN_BETWEEN_RUNS, _TRAIN_GAP_S = 140, 55, 0.015
_LONGEST_SILENCE_S = 55.0
_RUN_BEGINS_MINUTE = 270
_RADARS = 41
_IMAGE_SPREAD = 1.2
_IMAGE_LOG_MEDIAN = math.log(15_264e6 / 6_528) - _IMAGE_SPREAD**2 / 2
_SECTORS = (("RadM", 1, 24, 25.0), ("RadC", 5, 144, 50.0), ("RadF", 10, 560, 59.0))
"""Sector, minutes between scans, images of a scan, seconds over which they arrive."""
