"""The present state of a source, for people."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a subscription at a broker."""

    connected_at: datetime | None = None
    session_present: bool = False
    """The broker kept the session since the last connection."""
    bound: int = 0
    """Topics that the broker has accepted."""
    refused: tuple[str, ...] = ()
    """Topics that it has refused, each with the reason."""
    last_at: datetime | None = None
    """The last message."""
    fault: str = "not connected yet"
    """The reason for which it is not connected; empty while it is."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A message of which nothing is fetched."""

    at: datetime
    broker: str
    topic: str
    verdict: str
    sentence: str


@dataclass(slots=True)
class SourceNow:
    """A source at work."""

    standings: dict[str, Standing] = field(default_factory=dict)
    """By the broker's address."""
    passed_over: deque[PassedOver] = field(default_factory=lambda: deque(maxlen=MOST_PASSED_OVER))
    """The last ones; copies are left out."""


MOST_PASSED_OVER = 100
