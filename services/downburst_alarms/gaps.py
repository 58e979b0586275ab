"""How long each feed is used to be silent: gaps between arrivals, newest thousands of them."""

from bisect import insort
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta

from downburst.model import TrafficMinute


class Gaps:
    """Gaps of one feed, in seconds, and since when it is silent."""

    def __init__(self) -> None:
        self._order: deque[float] = deque()
        self._sorted: list[float] = []
        self.last_at: datetime | None = None

    def arrived(self, at: datetime) -> None:
        """Something arrived."""
        if self.last_at is not None and at > self.last_at:
            self._add((at - self.last_at).total_seconds())
        self.last_at = at if self.last_at is None else max(at, self.last_at)

    @property
    def known(self) -> int:
        """How many gaps are known."""
        return len(self._sorted)

    @property
    def p99_s(self) -> float | None:
        """The silence that 99 of 100 do not exceed; None while too few are known to say."""
        if self.known < FEWEST:
            return None
        return self._sorted[min(self.known - 1, int(self.known * 0.99))]

    @property
    def limit_s(self) -> float | None:
        """The silence that is too long: just below twice the p99, but not before some seconds."""
        p99_s = self.p99_s
        return None if p99_s is None else max(SHORTEST_S, FACTOR * p99_s)

    def silent_s(self, now: datetime) -> float:
        """Seconds since the last arrival."""
        return 0.0 if self.last_at is None else max(0.0, (now - self.last_at).total_seconds())

    def _add(self, gap_s: float) -> None:
        self._order.append(gap_s)
        insort(self._sorted, gap_s)
        if len(self._order) > MOST:
            # The list is sorted, so the oldest is found where it would be inserted.
            self._sorted.remove(self._order.popleft())


def gaps_of_history(minutes: Iterable[TrafficMinute]) -> dict[str, Gaps]:
    """What the ledger's minutes say of each feed, for a hub that has just started."""
    found: dict[str, Gaps] = {}
    for one in sorted(minutes, key=lambda it: it.minute):
        if one.products:
            end = _EPOCH + timedelta(minutes=one.minute + 1)
            found.setdefault(one.feed, Gaps()).arrived(end)
    return found


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
FEWEST = 20
"""Gaps below which a feed's habits are not known."""
MOST = 5_000
FACTOR = 1.9
"""A feed whose source has stopped is noticed within twice its p99 silence."""
SHORTEST_S = 10.0
"""Arrivals are told by the second, so shorter silences are not judged."""
