"""The worst feed of each site, as a share of its objective."""

from collections.abc import Mapping
from dataclasses import dataclass

from downburst.domain.latency import QUARTER_MINUTES, LatencyKind
from downburst.ledger import Transaction
from downburst.ledger.repositories.latency.selection import Selection
from downburst.sketches.sheet import Sheet


@dataclass(frozen=True, slots=True)
class Worst:
    """The p99 of the feed that is nearest to its objective, or farthest beyond it."""

    share: float
    """Relative to the objective at the site: 1 is the objective."""
    feed: str
    p99_ms: float
    objective_ms: float
    products: int


BySite = Mapping[str, Worst]


@dataclass(frozen=True, slots=True)
class Objectives:
    """The latencies that feeds must meet."""

    of_feeds: Mapping[str, float]
    """Milliseconds by feed."""
    of_sites: Mapping[tuple[str, str], float]
    """Milliseconds by feed and site, in place of the feed's own."""

    @classmethod
    def read(cls, tx: Transaction) -> "Objectives":
        """The present ones."""
        of_feeds = {feed.name: feed.objective_ms for feed in tx.feeds.all()}
        return cls(of_feeds, {(one.feed, one.site): one.objective_ms for one in tx.alerting.objectives.all()})

    def of(self, feed: str, site: str) -> float | None:
        """Milliseconds; None for a removed feed."""
        return self.of_sites.get((feed, site), self.of_feeds.get(feed))


def worst_by_quarter(tx: Transaction, begin: int, end: int, objectives: Objectives) -> dict[int, dict[str, Worst]]:
    """By the first minute of each quarter hour with a latency, the worst feed of each site; excludes the end."""
    found: dict[int, dict[str, Worst]] = {}
    # Feed by feed: the sketches of all feeds together would take a hundred megabytes on a large hub.
    for feed in objectives.of_feeds:
        wanted = Selection(begin, end, feed=feed, kind=LatencyKind.DISTRIBUTION)
        _add(found, tx.measured.latency.sheet(wanted, step_minutes=1), objectives, QUARTER_MINUTES)
    return found


def newest_worst(
    tx: Transaction, since: int, begin: int, end: int, objectives: Objectives
) -> tuple[dict[int, dict[str, Worst]], dict[str, Worst]]:
    """As `worst_by_quarter` from `since` on, and the worst feed of each site from `begin` on; in one reading."""
    quarters: dict[int, dict[str, Worst]] = {}
    present: dict[int, dict[str, Worst]] = {}
    for feed in objectives.of_feeds:
        wanted = Selection(min(since, begin), end, feed=feed, kind=LatencyKind.DISTRIBUTION)
        sheet = tx.measured.latency.sheet(wanted, step_minutes=1)
        _add(quarters, sheet.between(since, end), objectives, QUARTER_MINUTES)
        _add(present, sheet.between(begin, end), objectives, _ALL_TIME)
    return quarters, present.get(0, {})


def _add(found: dict[int, dict[str, Worst]], sheet: Sheet, objectives: Objectives, step_minutes: int) -> None:
    by_site = sheet.by_site()
    paths, minutes, merged = by_site.by_path_and_step(step_minutes)
    (p99,) = merged.quantiles_ms(0.99)
    for at, minute, p99_ms, count in zip(
        paths.tolist(), minutes.tolist(), p99.tolist(), merged.count.tolist(), strict=True
    ):
        path = by_site.paths[at]
        objective_ms = objectives.of(path.feed, path.site)
        if objective_ms:
            share = p99_ms / objective_ms
            sites = found.setdefault(minute, {})
            known = sites.get(path.site)
            if known is None or share > known.share:
                sites[path.site] = Worst(share, path.feed, p99_ms, objective_ms, count)


_ALL_TIME = 2**31
"""A step that holds every minute."""
