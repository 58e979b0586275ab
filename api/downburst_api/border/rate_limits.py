"""Rate limits: a token bucket for each name."""

from collections import OrderedDict

from downburst.foundation.clock import Clock
from downburst.foundation.errors import TooMany


class Limit:
    """At most `burst` at a time and `per_minute` on average, for each name."""

    def __init__(self, clock: Clock, *, per_minute: float, burst: int, what: str) -> None:
        self._clock = clock
        self._per_s = per_minute / 60
        self._burst = burst
        self._what = what
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Counts a request before it is carried out; refuses above the limit, with the time until the next may pass.

        A check followed by a later count would let any number of concurrent requests through.
        """
        left, at_s = self._left(name)
        if left < 1:
            wait_s = max(1, round((1 - left) / self._per_s + 0.5))
            raise TooMany(f"too many {self._what}; try again in {wait_s} s", retry_after_s=wait_s)
        self._put(name, left - 1, at_s)

    def give_back(self, name: str) -> None:
        """Uncounts one: the request was not of the limited kind."""
        left, at_s = self._left(name)
        self._put(name, min(self._burst, left + 1), at_s)

    def forgive(self, name: str) -> None:
        """Refills the bucket."""
        self._buckets.pop(name, None)

    def _left(self, name: str) -> tuple[float, float]:
        now_s = self._clock.monotonic_s()
        left, before_s = self._buckets.get(name, (float(self._burst), now_s))
        return min(self._burst, left + (now_s - before_s) * self._per_s), now_s

    def _put(self, name: str, left: float, at_s: float) -> None:
        self._buckets[name] = (left, at_s)
        self._buckets.move_to_end(name)
        if len(self._buckets) > MOST_NAMES:
            self._buckets.popitem(last=False)


MOST_NAMES = 20_000
"""Names remembered at a time; a client needs as many addresses to have its own forgotten."""
