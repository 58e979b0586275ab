"""The latency of sites by the hour or the day: what the heat map is made of."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from downburst.domain.alarms import AlarmKind
from downburst.domain.latency import LatencyKind
from downburst.foundation.clock import from_us, to_us
from downburst.ledger import Transaction
from downburst.ledger.repositories.latency.selection import Selection
from downburst.live.state import LiveState
from downburst.sketches.sheet import Sheet
from downburst_api.sites.standings import Standings
from downburst_api.strip.cells import ORDER, StripSite, state_of
from downburst_api.strip.facts import strip_sites, whole_feeds
from downburst_api.strip.worst import Objectives, Worst
from downburst_contract.now.strip import CellState

BySite = Mapping[str, Mapping[int, Worst]]
"""By site and the first minute of a step, its p99 and its objective."""


@dataclass(frozen=True, slots=True)
class HeatRange:
    """Whole steps up to a minute, which the last step may contain."""

    begin: int
    """Minutes since 1970, as are all."""
    end: int
    step: int

    @classmethod
    def of(cls, minutes: int, end: int) -> "HeatRange":
        """Steps of an hour for up to a week, of a day for more, so that a row has at most 367."""
        step = HOUR if minutes <= MINUTES_BY_HOUR else DAY
        return cls((end - minutes) // step * step, end, step)

    @property
    def steps(self) -> range:
        """The first minute of each step."""
        return range(self.begin, self.end, self.step)


@dataclass(frozen=True, slots=True)
class HeatFacts:
    """What the ledger and the present know of the sites of one feed."""

    sites: list[StripSite]
    measured: BySite
    arrived: Collection[int]
    """Steps with products in the feed that should have been reported by now."""
    objectives: Objectives

    @classmethod
    def read(cls, tx: Transaction, live: LiveState, wanted: HeatRange, *, feed: str, reported: int) -> "HeatFacts":
        """Reads the facts; products that arrived from the minute `reported` on may still be on their way."""
        objectives = Objectives.read(tx)
        asked = Selection(wanted.begin, wanted.end, feed=feed, kind=LatencyKind.DISTRIBUTION)
        sheet = tx.measured.latency.sheet(asked, step_minutes=wanted.step).by_site()
        sites = _sites(tx, live, wanted, feed, {path.site for path in sheet.paths})
        return cls(sites, by_site(sheet, wanted, objectives), _arrived(tx, wanted, feed, reported), objectives)


def _sites(
    tx: Transaction, live: LiveState, wanted: HeatRange, feed: str, measured: Collection[str]
) -> list[StripSite]:
    """Sites that take the feed and have received something, and those that reported a latency of it."""
    everyone, standings, whole = tx.sites.all(), Standings.read(tx), whole_feeds(tx)
    takers = {site for of, site in tx.subscriptions.pairs() if of == feed}
    downs = tx.alerting.alarms.lasting(AlarmKind.SITE_DOWN, since=from_us(wanted.begin * 60_000_000))
    sites, _ = strip_sites(everyone, live, wanting=takers, standings=standings, whole=whole, downs=downs)
    known = {site.name for site in sites} | standings.relays
    others = (site for site in everyone if site.name in measured and site.name not in known)
    # They took the feed once, or the hub has a ledger from elsewhere: their silence says nothing.
    return [*sites, *(StripSite(site.name, frozenset(), site.created_at) for site in others)]


def by_site(sheet: Sheet, wanted: HeatRange, objectives: Objectives) -> BySite:
    """The p99 of each site in each step with a latency."""
    found: defaultdict[str, dict[int, Worst]] = defaultdict(dict)
    paths, minutes, merged = sheet.by_path_and_step(wanted.step)
    (p99,) = merged.quantiles_ms(0.99)
    columns = (paths.tolist(), minutes.tolist(), p99.tolist(), merged.count.tolist())
    for at, minute, p99_ms, products in zip(*columns, strict=True):
        path = sheet.paths[at]
        objective_ms = objectives.of(path.feed, path.site)
        if objective_ms:
            found[path.site][minute] = Worst(p99_ms / objective_ms, path.feed, p99_ms, objective_ms, products)
    return found


def rows_out(facts: HeatFacts, wanted: HeatRange, *, feed: str, site: str | None) -> list[dict[str, Any]]:
    """A row for each site, or for one: the worst first, by the newest state, then by the highest share."""
    rows = [_row(one, facts, wanted, feed) for one in facts.sites if site in (None, one.name)]
    return sorted(rows, key=_worst_first)


def _row(site: StripSite, facts: HeatFacts, wanted: HeatRange, feed: str) -> dict[str, Any]:
    measured = facts.measured.get(site.name, {})
    since = None if site.since is None else to_us(site.since) // 60_000_000
    takes_whole = feed in site.whole_feeds
    cells: list[dict[str, Any]] = []
    for at in wanted.steps:
        down = any(outage.touches(at, wanted.step) for outage in site.outages)
        was_due = takes_whole and at in facts.arrived and (since is None or since < at)
        worst = measured.get(at)
        cells.append(_cell_out(state_of(worst, down=down, was_due=was_due), worst))
    return {"site": site.name, "objective_ms": facts.objectives.of(feed, site.name), "cells": cells}


def _cell_out(state: CellState, worst: Worst | None) -> dict[str, Any]:
    if worst is None:
        return {"state": state, "share": None, "p99_ms": None, "products": 0}
    return {"state": state, "share": round(worst.share, 4), "p99_ms": worst.p99_ms, "products": worst.products}


def _worst_first(row: Mapping[str, Any]) -> tuple[int, float, str]:
    cells: Sequence[Mapping[str, Any]] = row["cells"]
    highest = max((cell["share"] for cell in cells if cell["share"] is not None), default=0.0)
    return ORDER.index(cells[-1]["state"]), -highest, row["site"]


def _arrived(tx: Transaction, wanted: HeatRange, feed: str, reported: int) -> Collection[int]:
    """Whole hours by their sums; of the last one the part that should have been reported."""
    last = min(wanted.end, reported) // HOUR * HOUR
    hours: Iterable[int] = tx.measured.traffic.hours(feed, since_minute=wanted.begin, until_minute=last)
    begin, end = max(last, wanted.begin), min(wanted.end, reported)
    young = tx.measured.traffic.quarters([feed], since_minute=begin, until_minute=end)
    minutes = [*hours, *(one.minute for one in young)]
    return {minute // wanted.step * wanted.step for minute in minutes}


HOUR = 60
DAY = 24 * HOUR
MINUTES_BY_HOUR = 7 * DAY
