"""The overview's data from the ledger."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from downburst.domain.alarms import Alarm, Silence
from downburst.domain.circuits import Circuit, Measured
from downburst.domain.faults import Fault
from downburst.domain.feeds import Feed
from downburst.domain.plans import LegCounters, Plan
from downburst.domain.sites import Site
from downburst.domain.upstreams import LdmSource, Upstream
from downburst.ledger import Transaction
from downburst_api.sites.standings import Standings


@dataclass(frozen=True, slots=True)
class Facts:
    """Rows read at one moment."""

    feeds: list[Feed]
    sites: list[Site]
    wanted: set[tuple[str, str]]
    """Feed and site of each subscription."""
    plans: dict[str, Plan]
    counters: list[LegCounters]
    standings: Standings
    upstreams: list[Upstream]
    ldm_sources: list[LdmSource]
    circuits: list[Circuit]
    """The active ones, and the next to begin."""
    measured: list[Measured]
    faults: list[Fault]
    alarms: list[Alarm]
    silences: list[Silence]

    @classmethod
    def read(cls, tx: Transaction, now: datetime) -> Self:
        """Reads the facts as of now."""
        circuits = [*tx.circuits.begun(), *tx.circuits.next_to_begin(CIRCUITS_AHEAD)]
        return cls(
            circuits=circuits,
            measured=tx.circuits.measurements() if circuits else [],
            feeds=tx.feeds.all(),
            sites=tx.sites.all(),
            wanted=tx.subscriptions.pairs(),
            plans={plan.feed: plan for plan in tx.planning.plans.all_current()},
            counters=tx.planning.legs.counters(),
            standings=Standings.read(tx),
            upstreams=tx.fleet.upstreams.all(),
            ldm_sources=tx.ldm.sources.all(),
            faults=tx.measured.faults.recent(since=now - FAULT_SHOWN),
            alarms=tx.alerting.alarms.open(),
            silences=tx.alerting.silences.current(),
        )

    def fan_out(self) -> Counter[str]:
        """The number of sites that take each feed."""
        served = {site.name: site for site in self.sites if site.active}
        return Counter(feed for feed, site in self.wanted if site in served and served[site].may_take(feed))


CIRCUITS_AHEAD = 20
FAULT_SHOWN = timedelta(minutes=10)
