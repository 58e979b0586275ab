"""The connections of a site over time, and the limits of each."""

from downburst_contract.base import Answer, OffsetTime


class LimitShare(Answer):
    """The part of the time for one limit, 0 to 1: `application`, `receive-window`, `receiver`, `send-buffer`,
    `network-loss`, `congestion-window` or `pacing`."""

    limit: str
    share: float


class Verdict(Answer):
    """The limits of a connection, by their share of its time."""

    leading: str
    """The limit with the largest share."""
    sentence: str
    """Names it, its share, and what would help."""
    seconds: float
    """The time that was judged."""
    shares: list[LimitShare]
    """Of all limits, the largest first; their sum is 1."""


class Stall(Answer):
    """A span in which nothing was acknowledged although bytes waited or were in flight."""

    begun_at: OffsetTime
    until: OffsetTime
    waiting_bytes: int
    ended: bool
    """False: it may last on."""


class TracedConnection(Answer):
    """One connection between the hub's node and the site."""

    local: str
    peer: str
    role: str
    """`session`, or `data` for a further connection of it."""
    samples: list[list[int | None]]
    """Oldest first: the time in microseconds since 1970, then a value for each of `variables`; null: the kernel does
    not report it."""
    verdict: Verdict | None
    """Null: there are no two samples to compare."""
    stalls: list[Stall]


class TracedSite(Answer):
    """The connections of a site in a period."""

    site: str
    unable: str | None
    """The reason why samples are missing; null: none are."""
    missed_ticks: int
    """Looks that came too late and were left out, since the node began."""
    damaged: int
    """Damaged records that were passed over."""
    recorded_since: OffsetTime | None
    """The time of the oldest sample that is kept, of any site; null: there is none."""
    recorded_until: OffsetTime | None
    complete: bool
    """False: there were more samples or connections than an answer holds; the newest are here."""
    variables: list[str]
    """Names as in the kernel's `struct tcp_info`."""
    counters: list[str]
    """Those of `variables` that count from the connection's beginning on: only differences have a meaning."""
    connections: list[TracedConnection]
