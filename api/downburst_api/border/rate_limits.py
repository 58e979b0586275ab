"""How often somebody may ask: a bucket of tokens for each, refilled at a rate."""

from collections import OrderedDict

from downburst.foundation.clock import Clock
from downburst.foundation.errors import TooMany


class Limit:
    """At most `burst` at once and `per_minute` in the long run, for each name apart."""

    def __init__(self, clock: Clock, *, per_minute: float, burst: int, what: str) -> None:
        self._clock = clock
        self._per_s = per_minute / 60
        self._burst = burst
        self._what = what
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Counts one before it is carried out; refuses with the time after which it is worth while again.

        A look first and a count afterwards would let any number through that come in between.
        """
        left, at_s = self._left(name)
        if left < 1:
            wait_s = max(1, round((1 - left) / self._per_s + 0.5))
            raise TooMany(f"too many {self._what}; try again in {wait_s} s", retry_after_s=wait_s)
        self._put(name, left - 1, at_s)

    def give_back(self, name: str) -> None:
        """Counts one less: what was carried out was none of those that are limited."""
        left, at_s = self._left(name)
        self._put(name, min(self._burst, left + 1), at_s)

    def forgive(self, name: str) -> None:
        """Fills the bucket again."""
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
"""Names kept at a time; whoever changes addresses to be forgotten has to have as many."""
