"""What the overview takes from the ledger."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from downburst.alarms import Alarm, Silence
from downburst.circuits import Circuit, Measured
from downburst.ledger import Book
from downburst.model import Fault, Feed, LdmSource, LegCounters, Plan, Site, Upstream
from downburst_api.sites.standings import Standings


@dataclass(frozen=True, slots=True)
class Facts:
    """Rows of one moment."""

    feeds: list[Feed]
    sites: list[Site]
    wanted: set[tuple[str, str]]
    """Feed and site of what is subscribed."""
    plans: dict[str, Plan]
    counters: list[LegCounters]
    standings: Standings
    upstreams: list[Upstream]
    ldm_sources: list[LdmSource]
    circuits: list[Circuit]
    """Those that have begun, and the next to begin."""
    measured: list[Measured]
    faults: list[Fault]
    alarms: list[Alarm]
    silences: list[Silence]

    @classmethod
    def read(cls, book: Book, now: datetime) -> Self:
        """As of now."""
        circuits = [*book.circuits.begun(), *book.circuits.next_to_begin(CIRCUITS_AHEAD)]
        return cls(
            circuits=circuits,
            measured=book.circuits.measurements() if circuits else [],
            feeds=book.feeds.all(),
            sites=book.sites.all(),
            wanted=book.subscriptions.pairs(),
            plans={plan.feed: plan for plan in book.plans.all_current()},
            counters=book.legs.counters(),
            standings=Standings.read(book),
            upstreams=book.upstreams.all(),
            ldm_sources=book.ldm_sources.all(),
            faults=book.faults.recent(since=now - FAULT_SHOWN),
            alarms=book.alarms.open(),
            silences=book.silences.current(),
        )

    def fan_out(self) -> Counter[str]:
        """By feed, how many sites take it."""
        served = {site.name: site for site in self.sites if site.active}
        return Counter(feed for feed, site in self.wanted if site in served and served[site].may_take(feed))


CIRCUITS_AHEAD = 20
FAULT_SHOWN = timedelta(minutes=10)
