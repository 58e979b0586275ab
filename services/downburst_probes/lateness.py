"""Products that are late while a probe runs, by the signals that arrive each second.

Three of them: the age of the oldest stored product that a connected site lacks, the wait of the hub's heartbeat in a
feed, and the latency of products that arrived. Each is compared with the objective of the feed and site. A path that
was late before the probe began gives no reason to end it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from downburst.domain.alarms import Objective
from downburst.domain.feeds import Feed
from downburst.domain.probes.signs import PathsMeasured
from downburst.foundation.clock import to_us
from downburst.live.state import LiveState


@dataclass(frozen=True, slots=True)
class Late:
    """A feed of a site that misses its objective now."""

    site: str
    feed: str
    late_ms: float
    """The age of the oldest product or heartbeat that the site lacks, or the latency of products that arrived."""
    objective_ms: float
    arrived: bool = False

    @property
    def words(self) -> str:
        """The lateness for people."""
        late = f"{self.late_ms / 1e3:.1f} s"
        state = f"took {late}" if self.arrived else f"are {late} old and not there"
        objective = f"the objective is {self.objective_ms / 1e3:g} s"
        return f"products of {self.feed} for {self.site} {state}; {objective}"


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


class LateArrivals:
    """The paths whose products arrived late lately, by what sites report each second."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[Late, float]] = {}

    def take(self, measured: PathsMeasured, objectives: Objectives, now_s: float) -> None:
        """Takes a second's reports at this time of the monotonic clock."""
        self._found = {path: known for path, known in self._found.items() if now_s - known[1] < REMEMBERED_S}
        for path in measured.paths:
            objective_ms = objectives.ms(path.feed, path.site)
            if objective_ms is not None and path.p99_ms - path.bound_ms > objective_ms:
                late = Late(path.site, path.feed, path.p99_ms, objective_ms, arrived=True)
                self._found[path.site, path.feed] = late, now_s

    def since(self, at_s: float) -> dict[tuple[str, str], Late]:
        """The late paths of which a report came since this time."""
        return {path: late for path, (late, known_s) in self._found.items() if known_s >= at_s}


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


REMEMBERED_S = 10.0
"""A path with a late product within this time before a probe was late before it."""
