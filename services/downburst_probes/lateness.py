"""Products that are late while a probe runs, by the signals that arrive each second.

Two of them: the age of the oldest stored product that a connected site lacks, and the wait of the hub's heartbeat in
a feed. Both are compared with the objective of the feed and site. A path that was late before the probe began gives
no reason to end it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from downburst.domain.alarms import Objective
from downburst.domain.feeds import Feed
from downburst.foundation.clock import to_us
from downburst.live.state import LiveState


@dataclass(frozen=True, slots=True)
class Late:
    """A feed of a site that misses its objective now."""

    site: str
    feed: str
    late_ms: float
    """The age of the oldest product or heartbeat that the site lacks."""
    objective_ms: float

    @property
    def words(self) -> str:
        """The lateness for people."""
        return (
            f"products of {self.feed} for {self.site} are {self.late_ms / 1e3:.1f} s old and not there; "
            f"the objective is {self.objective_ms / 1e3:g} s"
        )


@dataclass(frozen=True, slots=True)
class Objectives:
    """The objectives of feeds, and of single sites where these differ."""

    feeds: Mapping[str, float] = field(default_factory=dict)
    sites: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @staticmethod
    def of(feeds: Iterable[Feed], objectives: Iterable[Objective]) -> "Objectives":
        """Those of the ledger."""
        return Objectives(
            {feed.name: feed.objective_ms for feed in feeds},
            {(one.feed, one.site): one.objective_ms for one in objectives},
        )

    def ms(self, feed: str, site: str) -> float | None:
        """The objective; None for a feed that was removed."""
        return self.sites.get((feed, site), self.feeds.get(feed))


def late_paths(live: LiveState, objectives: Objectives, now: datetime) -> dict[tuple[str, str], Late]:
    """The late paths of connected sites, by site and feed."""
    found: dict[tuple[str, str], Late] = {}
    for site, feed, late_ms in _ages(live, to_us(now)):
        objective_ms = objectives.ms(feed, site)
        if objective_ms is not None and late_ms > objective_ms:
            known = found.get((site, feed))
            if known is None or known.late_ms < late_ms:
                found[site, feed] = Late(site, feed, late_ms, objective_ms)
    return found


def _ages(live: LiveState, now_us: int) -> Iterator[tuple[str, str, float]]:
    for site, session in live.sessions.items():
        if not session.connected:
            continue
        for feed, backlog in live.backlog_by_feed(site).items():
            if backlog.products and backlog.oldest_us is not None:
                yield site, feed, (now_us - backlog.oldest_us) / 1e3
        for feed, progress in session.progress.items():
            if progress.heartbeat_waited_us is not None:
                yield site, feed, progress.heartbeat_waited_us / 1e3
