"""Times in which a broker may have dropped notifications; pure.

A broker that lost the session has dropped everything since the last connection. One that kept it drops the newest
messages once its queue is full, and tells nobody: mosquitto's holds 1,000 by default, and the guide to WIS2 names
2,000. So a long queue after an absence ends in a hole, from its last message to the connection. Another broker of the
source that was connected throughout has brought all of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from downburst.domain.bridges import Hole, Standing


@dataclass(slots=True)
class _Broker:
    connected_at: datetime | None = None
    away_since: datetime | None = None
    """The last time at which it is known to have been connected."""
    waited: int = 0
    """Messages since the connection that had been sent before it."""
    last_waited_at: datetime | None = None
    """The publication of the last of them."""


@dataclass(frozen=True, slots=True)
class Found:
    """A hole, and the broker that has brought all of it; None: none did."""

    hole: Hole
    filled_by: str | None


@dataclass(slots=True)
class HoleWatch:
    """The brokers of one source."""

    source: str
    known_to: datetime | None = None
    """The newest notification of earlier runs; None: the source is new."""
    _brokers: dict[str, _Broker] = field(default_factory=dict)

    def changed(self, url: str, standing: Standing, at: datetime) -> Found | None:
        """Takes the state of a subscription; returns the hole that a lost session leaves."""
        broker = self._brokers.setdefault(url, _Broker(away_since=self.known_to))
        if standing.connected_at is None:
            if broker.connected_at is not None:
                broker.connected_at, broker.away_since = None, at
            return None
        if broker.connected_at == standing.connected_at:
            return None
        broker.connected_at, broker.waited, broker.last_waited_at = standing.connected_at, 0, None
        since, broker.away_since = broker.away_since, broker.away_since if standing.session_present else None
        if standing.session_present or since is None:
            return None
        return self._found(url, since, standing.connected_at, "the broker did not keep the session")

    def heard(self, url: str, published_at: datetime, at: datetime) -> Found | None:
        """Takes a message; the first one that was published after the connection ends the queue of the absence."""
        broker = self._brokers.get(url)
        if broker is None or broker.connected_at is None or broker.away_since is None:
            return None
        if published_at < broker.connected_at and at - broker.connected_at < LONGEST_QUEUE:
            broker.waited += 1
            broker.last_waited_at = max(broker.last_waited_at or published_at, published_at)
            return None
        waited, last = broker.waited, broker.last_waited_at
        broker.away_since, broker.waited, broker.last_waited_at = None, 0, None
        if waited < SHORTEST_FULL_QUEUE or last is None:
            return None
        reason = f"{waited} messages waited at the broker, whose queue may have been full"
        return self._found(url, last, broker.connected_at, reason)

    def _found(self, url: str, since: datetime, to: datetime, reason: str) -> Found:
        hole = Hole(self.source, url, since, to, reason)
        return Found(hole, next((other for other, one in self._others(url).items() if _covers(one, since)), None))

    def _others(self, url: str) -> Mapping[str, _Broker]:
        return {other: one for other, one in self._brokers.items() if other != url}


def _covers(broker: _Broker, since: datetime) -> bool:
    """True if it has been connected since before that, and its own queue is at its end."""
    return broker.connected_at is not None and broker.connected_at <= since and broker.away_since is None


SHORTEST_FULL_QUEUE = 1_000
LONGEST_QUEUE = timedelta(minutes=10)
"""After it, a publisher whose clock is wrong no longer counts as one that waited."""
