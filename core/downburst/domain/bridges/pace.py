"""The pace of a source: its messages per second, and the seconds from a publication to this hub."""

import math
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class Pace:
    """The messages of one broker in the last minute."""

    delay_s: float | None = None
    """From publication to receipt, of the last notification; None: none could be read yet."""
    _seconds: deque[tuple[int, int]] = field(default_factory=deque)
    """Seconds since 1970, each with its number of messages; at most those of a minute."""

    def count(self, at: datetime) -> None:
        """Takes a message."""
        second = int(at.timestamp())
        if self._seconds and self._seconds[-1][0] >= second:
            last, count = self._seconds.pop()
            self._seconds.append((last, count + 1))
        else:
            self._seconds.append((second, 1))
        self._forget(second)

    def heard(self, published_at: datetime, at: datetime) -> None:
        """Takes the times of a notification."""
        self.delay_s = (at - published_at).total_seconds()

    def per_s(self, at: datetime) -> float:
        """Messages per second over the last minute."""
        self._forget(int(at.timestamp()))
        return sum(count for _, count in self._seconds) / WINDOW_S

    def _forget(self, second: int) -> None:
        while self._seconds and self._seconds[0][0] <= second - WINDOW_S:
            self._seconds.popleft()


@dataclass(slots=True)
class Latencies:
    """Seconds from the publication of products to this hub's log, of the last ones that were stored."""

    _seconds: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))

    def add(self, seconds: float) -> None:
        """Takes a product."""
        self._seconds.append(seconds)

    def __len__(self) -> int:
        return len(self._seconds)

    def quantile(self, share: float) -> float | None:
        """The nearest rank, in seconds; None: no product was stored yet."""
        if not self._seconds:
            return None
        return sorted(self._seconds)[max(math.ceil(share * len(self._seconds)), 1) - 1]


WINDOW_S = 60
KEPT = 1_000
