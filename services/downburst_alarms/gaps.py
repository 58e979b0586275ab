"""The usual silence of each feed: gaps between arrivals, the newest thousands of them."""

from bisect import insort
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta

from downburst.domain.feeds import TrafficMinute

FEWEST = 100
"""Gaps below which a feed's usual silence is unknown."""


class Gaps:
    """Gaps of one feed, in seconds, and the begin of its present silence."""

    def __init__(self, fewest: int = FEWEST) -> None:
        self._fewest = fewest
        self._order: deque[float] = deque()
        self._sorted: list[float] = []
        self.last_at: datetime | None = None

    def arrived(self, at: datetime) -> None:
        """Records an arrival."""
        if self.last_at is not None and at > self.last_at:
            gap_s, usual_s = (at - self.last_at).total_seconds(), self.usual_s
            # An outage must not become usual: the next one must be reported as early. A new pattern is learnt in
            # steps.
            self._add(gap_s if usual_s is None else min(gap_s, max(SHORTEST_S, FACTOR * usual_s)))
        self.last_at = at if self.last_at is None else max(at, self.last_at)

    @property
    def known(self) -> int:
        """The number of recorded gaps."""
        return len(self._sorted)

    @property
    def usual_s(self) -> float | None:
        """The 99.9th percentile of the gaps, of few gaps the longest; None while there are too few."""
        if self.known < self._fewest:
            return None
        return self._sorted[min(self.known - 1, int(self.known * 0.999))]

    @property
    def limit_s(self) -> float | None:
        """The silence that is too long: just below twice the usual, or three times while few gaps are known."""
        usual_s = self.usual_s
        factor = FACTOR if self.known >= MANY else FACTOR_OF_FEW
        return None if usual_s is None else max(SHORTEST_S, factor * usual_s)

    def silent_s(self, now: datetime) -> float:
        """Seconds since the last arrival."""
        return 0.0 if self.last_at is None else max(0.0, (now - self.last_at).total_seconds())

    def _add(self, gap_s: float) -> None:
        self._order.append(gap_s)
        insort(self._sorted, gap_s)
        if len(self._order) > MOST:
            # The list is sorted, so bisection finds the oldest gap.
            self._sorted.remove(self._order.popleft())


def gaps_of_history(minutes: Iterable[TrafficMinute], fewest: int = FEWEST) -> dict[str, Gaps]:
    """Each feed's gaps from the ledger's minutes, for a hub that has just started."""
    found: dict[str, Gaps] = {}
    for one in sorted(minutes, key=lambda it: it.minute):
        if one.products:
            end = _EPOCH + timedelta(minutes=one.minute + 1)
            found.setdefault(one.feed, Gaps(fewest)).arrived(end)
    return found


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
MANY = 1_000
"""Gaps from which the usual silence is well known."""
MOST = 5_000
FACTOR = 1.9
"""A stopped source is noticed within twice the feed's usual silence."""
FACTOR_OF_FEW = 3.0
"""Of fewer than MANY gaps the usual silence is about their longest. A pause between independent arrivals
(exponential) exceeds k times the longest of n before it with a chance of k!/n^k, so that a healthy feed rings once
within the pauses from n on with k!/((k - 1) n^(k - 1)): one in 50 with k = 2 from 100 on, one in 3,300 with k = 3."""
SHORTEST_S = 10.0
"""Arrivals are reported by the second, so shorter silences are not judged."""
