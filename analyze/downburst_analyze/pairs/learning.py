"""Rules for heavy pairs of feed and site, learnt offline, with the coverage that they have on the following day.

Hybrid traffic engineering (HNTES; Yan, Veeraraghavan and others, HPSR 2012 and 2013) found that flows of more than
1 GB in a minute hold most of the bytes, and that four of five end within two minutes: a circuit requested when one is
seen comes too late. So pairs are learnt from the days past. A pair gets a rule once it was heavy at two times at
least half an hour apart, which a single flow hardly is, and loses it after some days without a heavy minute.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from downburst.foundation.errors import BadInput

Pair = tuple[str, str]
"""Feed and site."""


@dataclass(frozen=True, slots=True)
class PairMinute:
    """The bytes of a feed to a site in one minute, counted since 1970."""

    feed: str
    site: str
    minute: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LearningRules:
    """Conditions of a rule."""

    heavy_bytes: int = 1_000_000_000
    """A minute with more bytes is heavy."""
    apart_minutes: int = 30
    """Least time between the first and the last heavy minute of a pair with a rule."""
    age_days: int = 7
    """Days without a heavy minute after which a pair is forgotten."""


@dataclass(frozen=True, slots=True)
class HeavyPair:
    """A pair with a rule, and its heavy minutes that are not forgotten."""

    feed: str
    site: str
    heavy_minutes: int
    heavy_bytes: int
    last_minute: int


@dataclass(frozen=True, slots=True)
class DayCoverage:
    """One day under the rules that were learnt before it."""

    day: int
    """Since 1970, UTC."""
    rules: int
    unused_rules: int
    """Those of pairs without a heavy minute on the day."""
    heavy_pairs: int
    heavy_bytes: int
    covered_bytes: int

    @property
    def covered_share(self) -> float | None:
        """The share of the heavy bytes that the rules cover; None without any."""
        return self.covered_bytes / self.heavy_bytes if self.heavy_bytes else None


@dataclass(frozen=True, slots=True)
class HeavyStudy:
    """The rules after the last day, those with most heavy bytes first, and the coverage of each day with rows."""

    rules: LearningRules
    pairs: tuple[HeavyPair, ...]
    days: tuple[DayCoverage, ...]
    sentence: str


def learn(minutes: Iterable[PairMinute], rules: LearningRules | None = None) -> HeavyStudy:
    """Learns from rows in order of time; a pair may have several rows for a minute, which are summed up."""
    learner = _Learner(rules or LearningRules())
    for one in minutes:
        learner.add(one)
    return learner.study()


@dataclass(slots=True)
class _HeavyDay:
    """The heavy minutes of a pair on one day."""

    day: int
    first_minute: int
    last_minute: int
    minutes: int = 0
    size_bytes: int = 0

    def add(self, minute: int, size_bytes: int) -> None:
        self.last_minute = minute
        self.minutes += 1
        self.size_bytes += size_bytes


class _Learner:
    """Keeps the open minute of all pairs, and the days of heavy ones."""

    def __init__(self, rules: LearningRules) -> None:
        self._rules = rules
        self._minute: int | None = None
        self._open: dict[Pair, int] = {}
        self._heavy: dict[Pair, deque[_HeavyDay]] = {}
        self._ruled: frozenset[Pair] = frozenset()
        self._days: list[DayCoverage] = []

    def add(self, one: PairMinute) -> None:
        if self._minute is not None and one.minute < self._minute:
            raise BadInput(f"minute {one.minute} comes after minute {self._minute}; sort the rows by time")
        if self._minute is not None and one.minute != self._minute:
            self._close_minute()
            if _day(one.minute) != _day(self._minute):
                self._close_day(_day(self._minute))
                self._forget(_day(one.minute))
        self._minute = one.minute
        pair = (one.feed, one.site)
        self._open[pair] = self._open.get(pair, 0) + one.size_bytes

    def study(self) -> HeavyStudy:
        if self._minute is not None:
            self._close_minute()
            self._close_day(_day(self._minute))
        found = [_pair(pair, self._heavy[pair]) for pair in self._ruled]
        pairs = tuple(sorted(found, key=lambda one: (-one.heavy_bytes, one.feed, one.site)))
        days = tuple(self._days)
        return HeavyStudy(self._rules, pairs, days, _sentence(self._rules, pairs, days))

    def _close_minute(self) -> None:
        minute = self._minute or 0
        for pair, size_bytes in self._open.items():
            if size_bytes > self._rules.heavy_bytes:
                days = self._heavy.setdefault(pair, deque())
                if not days or days[-1].day != _day(minute):
                    days.append(_HeavyDay(_day(minute), minute, minute))
                days[-1].add(minute, size_bytes)
        self._open.clear()

    def _close_day(self, day: int) -> None:
        """Judges the rules learnt before by this day, then learns from it."""
        today = {pair: days[-1].size_bytes for pair, days in self._heavy.items() if days[-1].day == day}
        covered = [size_bytes for pair, size_bytes in today.items() if pair in self._ruled]
        unused = len(self._ruled - today.keys())
        self._days.append(DayCoverage(day, len(self._ruled), unused, len(today), sum(today.values()), sum(covered)))
        self._rule()

    def _forget(self, today: int) -> None:
        """Drops what is too old on the day that begins, and the rules that rest on it."""
        for pair, days in list(self._heavy.items()):
            while days and days[0].day < today - self._rules.age_days:
                days.popleft()
            if not days:
                del self._heavy[pair]
        self._rule()

    def _rule(self) -> None:
        self._ruled = frozenset(
            pair
            for pair, days in self._heavy.items()
            if days[-1].last_minute - days[0].first_minute >= self._rules.apart_minutes
        )


def _day(minute: int) -> int:
    return minute // MINUTES_A_DAY


def _pair(pair: Pair, days: Iterable[_HeavyDay]) -> HeavyPair:
    seen = list(days)
    minutes, size_bytes = sum(day.minutes for day in seen), sum(day.size_bytes for day in seen)
    return HeavyPair(*pair, minutes, size_bytes, seen[-1].last_minute)


def _sentence(rules: LearningRules, pairs: tuple[HeavyPair, ...], days: tuple[DayCoverage, ...]) -> str:
    above = f"over {rules.heavy_bytes / 1e9:g} GB in a minute"
    if not pairs:
        return f"no pair of feed and site is {above} again and again, so none needs a circuit of its own"
    count = "1 pair of feed and site is" if len(pairs) == 1 else f"{len(pairs)} pairs of feed and site are"
    later = days[1:]
    heavy, covered = sum(day.heavy_bytes for day in later), sum(day.covered_bytes for day in later)
    if not heavy:
        return f"{count} {above} again and again; the coverage is known after one more day"
    return f"{count} {above} again and again; rules of the day before covered {covered / heavy:.1%} of such bytes"


MINUTES_A_DAY = 1_440
