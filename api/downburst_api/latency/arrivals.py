"""Arrivals in feeds, by step and by feed."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from downburst.domain.feeds import TrafficMinute
from downburst.foundation.clock import from_us


def arrivals(minutes: Iterable[TrafficMinute], step_minutes: int) -> list[dict[str, Any]]:
    """Arrivals in each step, oldest first; steps without arrivals are left out."""
    steps: defaultdict[int, list[TrafficMinute]] = defaultdict(list)
    for one in minutes:
        if one.products:
            steps[one.minute // step_minutes].append(one)
    return [
        {
            "at": from_us(step * step_minutes * 60_000_000),
            "products": sum(one.products for one in some),
            "bytes": sum(one.bytes for one in some),
            "peak_1s_bytes": max(one.peak_1s_bytes for one in some),
        }
        for step, some in sorted(steps.items())
    ]


def volumes(minutes: Iterable[TrafficMinute], *, begin: int, end: int) -> list[dict[str, Any]]:
    """A row for each feed, of the minutes from `begin` on and before `end`."""
    edges = hours_between(begin, end)
    products: defaultdict[str, int] = defaultdict(int)
    by_hour: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(edges) - 1))
    for one in minutes:
        products[one.feed] += one.products
        by_hour[one.feed][min(bisect_right(edges, one.minute, hi=len(edges) - 1), len(edges) - 1) - 1] += one.bytes
    sums = {feed: sum(its_hours) for feed, its_hours in by_hour.items()}
    everything, hours = sum(sums.values()), max(end - begin, 1) / 60
    lengths = [(after - before) / 60 for before, after in pairwise(edges)]
    return [
        {
            "feed": feed,
            "bytes": size,
            "products": products[feed],
            "mean_bytes_per_hour": size / hours,
            "max_bytes_per_hour": max(held / length for held, length in zip(by_hour[feed], lengths, strict=True)),
            "share": size / everything if everything else 0.0,
            "products_per_hour": products[feed] / hours,
        }
        for feed, size in sorted(sums.items(), key=lambda one: (-one[1], one[0]))
    ]


def hours_between(begin: int, end: int) -> list[int]:
    """Edges, in minutes, of the clock hours from which the greatest is taken.

    A partial hour at either end is merged into its neighbour, so that a busy minute does not count sixty times. The
    hours fill the range, and their rates are compared, not their sums: the mean is never above the greatest.
    """
    edges = [edge for edge in range(-(-begin // 60) * 60, end + 1, 60) if begin <= edge <= end]
    if len(edges) < 2:
        return [begin, max(end, begin + 1)]
    return [begin, *edges[1:-1], max(end, begin + 1)]
