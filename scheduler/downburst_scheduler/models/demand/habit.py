"""The habit of a feed's trains: the next start, from the starts seen, by the feed's own period or by the time of day.

Times are seconds of any steady clock; the time of day needs no calendar, as it is the same moment a day earlier.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median


@dataclass(frozen=True, slots=True)
class Expected:
    """A predicted start of a train."""

    at_s: float
    early_s: float
    """The spread: a start may be so much earlier or later."""
    sure: float
    """The share of the starts known that this habit would have predicted within the spread."""


class Habit:
    """The starts of one feed's trains, the latest `MOST` of them."""

    def __init__(self) -> None:
        self._starts_s: list[float] = []

    @classmethod
    def of(cls, starts_s: Iterable[float]) -> "Habit":
        """The habit of trains with these starts, in order of time."""
        habit = cls()
        for start_s in starts_s:
            habit.seen(start_s)
        return habit

    def seen(self, start_s: float) -> None:
        """Takes the start of a train; one that is not later than the last one is ignored."""
        if not math.isfinite(start_s) or (self._starts_s and start_s <= self._starts_s[-1]):
            return
        self._starts_s.append(start_s)
        if len(self._starts_s) > MOST:
            del self._starts_s[: -MOST * 3 // 4]

    def next_after(self, now_s: float) -> Expected | None:
        """The next start; None where neither the period nor the time of day is a sure habit."""
        found = [one for one in (self._by_period(now_s), self._by_day(now_s)) if one is not None]
        return max(found, key=lambda one: one.sure, default=None)

    def _by_period(self, now_s: float) -> Expected | None:
        """A median interval after the last start: single trains that are early, late or missing don't count."""
        recent = self._starts_s[-RECENT - 1 :]
        intervals_s = [later - earlier for earlier, later in pairwise(recent)]
        if len(intervals_s) < FEWEST:
            return None
        period_s = median(intervals_s)
        return _sure(recent[-1] + period_s, [abs(one - period_s) for one in intervals_s], period_s * LOOSE, now_s)

    def _by_day(self, now_s: float) -> Expected | None:
        """At the time of day of a train of the last day, if trains come back at their times of day."""
        starts_s = self._starts_s
        old = bisect_right(starts_s, now_s - DAY_S)
        if old < FEWEST or old == len(starts_s):
            return None
        known_s = starts_s[max(old - RECENT_OF_DAY, 0) : old]
        loose_s = min(median(later - earlier for earlier, later in pairwise(starts_s)) / 4, LOOSE_OF_DAY_S)
        return _sure(starts_s[old] + DAY_S, [self._distance_s(one + DAY_S) for one in known_s], loose_s, now_s)

    def _distance_s(self, at_s: float) -> float:
        place = bisect_left(self._starts_s, at_s)
        return min(abs(one - at_s) for one in self._starts_s[max(place - 1, 0) : place + 1])


def _sure(at_s: float, deviations_s: list[float], loose_s: float, now_s: float) -> Expected | None:
    within_s = [one for one in deviations_s if one <= loose_s]
    sure = len(within_s) / len(deviations_s)
    if sure < SURE or at_s + max(within_s) <= now_s:
        return None
    return Expected(at_s, max(within_s), sure)


DAY_S = 86_400.0
MOST = 4_096
"""Two days and a half of trains every minute."""
RECENT, RECENT_OF_DAY, FEWEST = 16, 64, 4
"""Starts by which a habit is judged: the last ones, those of a day ago, and the fewest of either."""
LOOSE, LOOSE_OF_DAY_S = 0.15, 300.0
"""Deviations within a habit: a share of the period, and seconds from the time of day."""
SURE = 0.8
"""A circuit ordered for a train that does not come is paid for in vain."""
