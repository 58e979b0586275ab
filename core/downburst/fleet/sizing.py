"""The number of senders for a load: it rises immediately, and falls only after a while."""

import math
from collections import deque
from dataclasses import dataclass, field

from downburst.settings.fleet import FleetSettings


@dataclass
class Sizing:
    """Follows the sent bytes, and computes the number of senders that they need. Times are of one monotonic clock."""

    settings: FleetSettings
    _sent: deque[tuple[float, int]] = field(default_factory=deque)
    _fewer_since_s: float | None = None
    """The time since which fewer would have sufficed, without a break."""
    _current: int | None = None

    def sent(self, frame_bytes: int, *, now_s: float) -> None:
        """Adds the bytes that all senders sent since the last call."""
        self._sent.append((now_s, frame_bytes))

    def load_bps(self, now_s: float) -> float:
        """Bits per second over the window that ends now."""
        while self._sent and self._sent[0][0] <= now_s - WINDOW_S:
            self._sent.popleft()
        return sum(frame_bytes for _, frame_bytes in self._sent) * 8 / WINDOW_S

    def resume(self, senders: int) -> None:
        """Continues from a number that another process chose, as it may be needed."""
        self._current = min(max(senders, self.settings.at_least), self.settings.at_most)

    def look(self, now_s: float) -> int:
        """The number of senders needed now."""
        needed = self._needed(self.load_bps(now_s))
        if self._current is None or needed >= self._current:
            self._current, self._fewer_since_s = needed, None
        elif self._fewer_since_s is None:
            self._fewer_since_s = now_s
        elif now_s - self._fewer_since_s >= self.settings.shrink_after_s:
            # One at a time: each that ends hands its sites to the others.
            self._current, self._fewer_since_s = self._current - 1, now_s
        return self._current

    def _needed(self, load_bps: float) -> int:
        wanted = math.ceil(load_bps / (self.settings.sender_bps * FILL))
        return min(max(wanted, self.settings.at_least), self.settings.at_most)


WINDOW_S = 60.0
"""Queues absorb bursts of single products; they don't affect the number of senders."""
FILL = 0.7
"""The used share of a sender's capacity: the rest is for catching up and for the loss of one."""
