"""The streams by which sites caught up together, since the hub started."""

from collections import Counter, deque
from collections.abc import Mapping

from downburst.domain.backlog import CatchUpChanged


class CatchUps:
    """The last streams of each feed, and sums of all of them."""

    def __init__(self) -> None:
        self._of: dict[str, deque[CatchUpChanged]] = {}
        self._streams = Counter[str]()
        self._saved_bytes = Counter[str]()

    def apply(self, event: CatchUpChanged) -> None:
        """Takes the beginning or the end of a stream; the end replaces its beginning."""
        kept = self._of.setdefault(event.feed, deque(maxlen=KEPT))
        if kept and kept[-1].state == "began" and kept[-1].leg == event.leg:
            kept.pop()
        kept.append(event)
        if event.state == "ended":
            self._streams[event.feed] += 1
            self._saved_bytes[event.feed] += event.saved_bytes

    def of_feed(self, feed: str) -> tuple[CatchUpChanged, ...]:
        """The last streams of a feed, the newest first."""
        return tuple(reversed(self._of.get(feed, ())))

    def forget(self, feed: str) -> None:
        """Drops the streams of a removed feed."""
        self._of.pop(feed, None)

    @property
    def streams(self) -> Mapping[str, int]:
        """By feed, the number of streams that ended."""
        return self._streams

    @property
    def saved_bytes(self) -> Mapping[str, int]:
        """By feed, the bytes that copies for each site would have needed beyond the streams'."""
        return self._saved_bytes


KEPT = 20
"""Streams of a feed; older ones are in the log of the node."""
