"""The present state of bridges, for people."""

from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import datetime

from downburst.domain.bridges.pace import Latencies, Pace


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
class CentreCounts:
    """The downloads of a centre's products since the hub started."""

    downloaded: int = 0
    errors: int = 0
    differing: int = 0
    """Of the errors: bytes that differ from the announced size or digest."""
    last_at: datetime | None = None
    """The last download."""


@dataclass(slots=True)
class SourceNow:
    """A source at work."""

    standings: dict[str, Standing] = field(default_factory=dict)
    """By the broker's address."""
    passed_over: deque[PassedOver] = field(default_factory=lambda: deque(maxlen=MOST_PASSED_OVER))
    """The last ones; copies are left out."""
    centres: defaultdict[str, CentreCounts] = field(default_factory=lambda: defaultdict(CentreCounts))
    paces: defaultdict[str, Pace] = field(default_factory=lambda: defaultdict(Pace))
    """By the broker's address."""
    latencies: Latencies = field(default_factory=Latencies)


@dataclass(slots=True)
class PublisherNow:
    """A publisher at work."""

    standing: Standing = field(default_factory=Standing)
    behind: int = 0
    """Products of the feed that it has not looked at."""
    refusal: str = ""
    """The broker's last refusal; empty after an announcement."""


@dataclass(slots=True)
class BridgesNow:
    """All bridges at work, by name."""

    sources: dict[str, SourceNow] = field(default_factory=dict)
    publishers: dict[str, PublisherNow] = field(default_factory=dict)


MOST_PASSED_OVER = 100
