"""The tracer's recording of a site's connections, with the limits of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class TracerQuestion:
    """The connections of a site in a period."""

    site: str
    since: datetime
    until: datetime
    points: int = 600
    """The most samples of each connection in the answer; all are judged."""
    variables: Sequence[str] = ()
    """Names as the kernel's; none: all."""


@dataclass(frozen=True, slots=True)
class LimitShare:
    """The part of the time for one limit, 0 to 1."""

    limit: str
    share: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The limits of a connection, by their share of its time."""

    leading: str
    sentence: str
    seconds: float
    """The time that was judged."""
    shares: tuple[LimitShare, ...]
    """Largest first; their sum is 1."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A span in which nothing was acknowledged although bytes waited."""

    begun_at: datetime
    until: datetime
    waiting_bytes: int
    ended: bool
    """False: it may last on."""


@dataclass(frozen=True, slots=True)
class TracedConnection:
    """One connection with its samples: rows of the time in microseconds since 1970 and a value per variable."""

    local: str
    peer: str
    role: str
    samples: tuple[tuple[int | None, ...], ...]
    verdict: Verdict | None
    """None: there are no two samples to compare."""
    stalls: tuple[Stall, ...]


@dataclass(frozen=True, slots=True)
class TracedSite:
    """The answer about a site."""

    variables: tuple[str, ...]
    """The columns of the samples behind the time."""
    connections: tuple[TracedConnection, ...]
    unable: str | None = None
    """The reason why samples are missing: a node takes none, or a sender did not answer."""
    missed_ticks: int = 0
    """Looks that came too late, since the node began."""
    damaged: int = 0
    """Records that were passed over."""
    recorded: tuple[datetime, datetime] | None = field(default=None)
    """The times of the oldest and the newest sample of any site."""
    complete: bool = True
    """False: the period holds more than an answer; the newest are here."""

    @property
    def counters(self) -> tuple[str, ...]:
        """Those of the variables that count from the connection's beginning on: only differences have a meaning."""
        return tuple(name for name in self.variables if name in COUNTERS)


COUNTERS = frozenset(
    (
        *("total_retrans", "bytes_acked", "bytes_sent", "bytes_retrans"),
        *("busy_time", "rwnd_limited", "sndbuf_limited", "reord_seen"),
    )
)
"""The variables that the node's table (crate tracer, variable.rs) marks as counters."""
