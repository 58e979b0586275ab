"""The strip's sites, as the ledger and the present know them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from downburst.domain.alarms import Alarm, AlarmKind
from downburst.domain.sites import Site
from downburst.foundation.clock import from_us
from downburst.ledger import Transaction
from downburst.live.site_states import SiteStanding, SiteState
from downburst.live.state import LiveState
from downburst_api.sites.standings import Standings
from downburst_api.strip.cells import Outage, StripSite

WholeFeeds = Mapping[str, frozenset[str]]
"""By site, the feeds of which it takes every product."""


@dataclass(frozen=True, slots=True)
class StripFacts:
    """Rows read at one moment."""

    sites: list[Site]
    wanting: set[str]
    """Sites with a subscription."""
    standings: Standings
    downs: list[Alarm]
    """Alarms of sites that were down at some time of the day."""
    arrived: dict[int, set[str]]
    """By quarter hour, the feeds with products."""

    @classmethod
    def read(cls, tx: Transaction, *, since_minute: int, until_minute: int) -> "StripFacts":
        """Reads the facts of a range of minutes; products that arrived from its end on count as not arrived yet."""
        feeds = [feed.name for feed in tx.feeds.all()]
        arrived: defaultdict[int, set[str]] = defaultdict(set)
        for one in tx.measured.traffic.quarters(feeds, since_minute=since_minute, until_minute=until_minute):
            arrived[one.minute].add(one.feed)
        return cls(
            tx.sites.all(),
            {site for _, site in tx.subscriptions.pairs()},
            Standings.read(tx),
            tx.alerting.alarms.lasting(AlarmKind.SITE_DOWN, since=from_us(since_minute * 60_000_000)),
            dict(arrived),
        )


def strip_sites(
    sites: Iterable[Site],
    live: LiveState,
    *,
    wanting: Collection[str],
    standings: Standings,
    whole: WholeFeeds,
    downs: Sequence[Alarm] = (),
) -> tuple[list[StripSite], int]:
    """Sites that receive something, and the number of those that should and have never received anything."""
    outages: defaultdict[str, list[Outage]] = defaultdict(list)
    for alarm in downs:
        # An open alarm may outlast the site's return for a while: the present decides about the present.
        if alarm.site is not None and alarm.ended_at is not None:
            outages[alarm.site].append(Outage(alarm.since, alarm.ended_at))
    found, never = [], 0
    for site in sites:
        if not site.active or site.name not in wanting or site.name in standings.relays:
            continue
        standing = standings.of(site, live)
        if standing.state in NEVER:
            never += 1
            continue
        all_outages = (*outages[site.name], *_present(site, standing))
        found.append(StripSite(site.name, whole.get(site.name, frozenset()), site.created_at, all_outages))
    return found, never


def whole_feeds(tx: Transaction) -> WholeFeeds:
    """The feeds that sites take whole: without a pattern of their own, and without a limit."""
    sites = {site.name: site for site in tx.sites.all()}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one in tx.subscriptions.all():
        site = sites.get(one.site)
        takes_all = one.pattern == EVERYTHING and one.not_pattern is None
        if takes_all and site is not None and site.may_take(one.feed) and not site.limits_of(one.feed):
            found[one.site].add(one.feed)
    return {site: frozenset(feeds) for site, feeds in found.items()}


def _present(site: Site, standing: SiteStanding) -> Iterable[Outage]:
    begin = standing.since or site.created_at
    if not standing.connected and begin is not None:
        yield Outage(begin)


EVERYTHING = ".*"
"""The pattern of a subscription to a whole feed."""
NEVER = (SiteState.NEVER_ENROLLED, SiteState.NEVER_CONNECTED)
