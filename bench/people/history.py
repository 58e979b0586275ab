"""A history for questions: latencies of each site and feed in nearly every minute, more of them by day than by night.

Some hours of a day are made up and rolled up as the ledger would; the others hold the same sheets, whose bytes
do not depend on their start. The longest spans are merged from the days. So the tables hold what a hub's would,
and a month is written in minutes; `tests/unit/bench/test_people.py` compares both ways.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from sqlalchemy import insert

from downburst.domain.feeds import Feed, TrafficMinute
from downburst.domain.latency import LatencyKind
from downburst.domain.plans import LegCounters, Transport
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.ledger import Ledger, Transaction
from downburst.ledger.repositories.latency.history import DAY, HOUR, STEPS
from downburst.ledger.tables.feeds import traffic_hours, traffic_minutes
from downburst.ledger.tables.latency import latency_sheets
from downburst.sketches.sheet import BESIDE_ZERO, Path, Sheet
from downburst.sketches.sheet_codec import pack_sheet
from downburst.sketches.sketch import GAMMA
from downburst_latency.service import OPEN_MINUTES

NOW = datetime(2026, 6, 17, 15, 42, 30, tzinfo=UTC)
"""Neither an hour nor a day is whole, and the longest span neither."""
KINDS = (LatencyKind.DISTRIBUTION, LatencyKind.QUEUEING)


@dataclass(frozen=True, slots=True)
class Case:
    """The size of the history."""

    sites: int = 100
    feeds: int = 15
    days: int = 30

    def feed(self, number: int) -> str:
        """A feed's name."""
        return f"FEED{number:02}"

    def site(self, number: int) -> str:
        """A site's name."""
        return f"site-{number:03}.edu"

    def per_minute(self, feed: int) -> float:
        """Products per minute: few feeds have many, many have few."""
        return float(0.5 * 64 ** (feed / max(self.feeds - 1, 1)))


def fill(ledger: Ledger, case: Case, seed: int) -> int:
    """Writes the history; returns the bytes that its sketches take."""
    now = int(NOW.timestamp()) // 60
    with ledger.transaction() as tx:
        tx.measured.partitions.keep(NOW)
        _configured(tx, case)
    for number in range(case.feeds):
        with ledger.transaction() as tx:
            for kind in KINDS:
                _of_kind(tx, case, number, kind, now, np.random.default_rng([seed, number, KINDS.index(kind)]))
            _arrivals(tx, case, number, now)
    with ledger.transaction() as tx:
        tx.measured.partitions.spread()
        return tx.measured.latency.packed_bytes()


def made_up_hour(case: Case, number: int, kind: LatencyKind, hour: int, random: np.random.Generator) -> Sheet:
    """An hour of one feed at all sites, from its minute 0."""
    by_day = 1 + 0.6 * np.sin((hour % 24 - 6) / 24 * 2 * np.pi)
    products = random.poisson(case.per_minute(number) * by_day, HOUR)
    minute = np.tile(np.repeat(np.arange(HOUR), products), case.sites)
    path = np.repeat(np.arange(case.sites), products.sum())
    middle_ms = (40.0 if kind is LatencyKind.QUEUEING else 180.0) * (1 + path / case.sites)
    values_us = np.maximum(np.rint(middle_ms * random.lognormal(0, 0.5, len(path)) * 1000), 1).astype(np.int64)
    ones, none = np.ones(len(path), np.int64), np.zeros(len(path), np.int64)
    codes = np.ceil(np.log(values_us / 1000) / np.log(GAMMA)).astype(np.int64) + BESIDE_ZERO
    paths = tuple(Path(case.feed(number), case.site(site), Transport.MULTICAST, kind) for site in range(case.sites))
    raw = Sheet(paths, path, minute, ones, none, values_us, values_us, values_us, ones * 500, ones, codes, ones)
    return raw.merged(1)


def _of_kind(
    tx: Transaction, case: Case, number: int, kind: LatencyKind, now: int, random: np.random.Generator
) -> None:
    some = [made_up_hour(case, number, kind, hour, random) for hour in range(0, 24, 4)]
    hours = [some[hour // 4] for hour in range(24)]
    packed_once = [pack_sheet(hour, begin=0) for hour in some]
    packed = [packed_once[hour // 4] for hour in range(24)]
    first, open_from = (now // DAY - case.days) * DAY, now // HOUR * HOUR
    rows = [_row(case.feed(number), kind, 1, at, packed[at // HOUR % 24]) for at in range(first, open_from, HOUR)]
    for step in STEPS[1:]:
        rows += _merged(case.feed(number), kind, step, hours, first, open_from)
    tx.measured.latency._connection.execute(insert(latency_sheets), rows)
    begun = _moved(hours[now // HOUR % 24], open_from).between(open_from, now + 1)
    tx.measured.latency.add(*begun.rows())
    while tx.measured.latency.roll_up(before_minute=now - OPEN_MINUTES):
        pass


def _merged(
    feed: str, kind: LatencyKind, step: int, hours: list[Sheet], first: int, end: int
) -> Iterator[dict[str, object]]:
    """The sheets of one step; spans of the same hours of the day are packed once."""
    known: dict[tuple[int, int], bytes] = {}
    by_hour = [hour.merged(HOUR) for hour in hours]
    for begin in range(first // step * step, end, step):
        inside = range(max(begin, first), min(begin + step, end), HOUR)
        key = (inside.start % DAY, len(inside))
        if key not in known:
            whole = Sheet.joined(_moved(by_hour[at // HOUR % 24], at) for at in inside)
            known[key] = pack_sheet(whole.merged(step), begin=begin)
        yield _row(feed, kind, step, begin, known[key])


def _moved(sheet: Sheet, begin: int) -> Sheet:
    return replace(sheet, minute=sheet.minute + begin)


def _row(feed: str, kind: LatencyKind, step: int, minute: int, packed: bytes) -> dict[str, object]:
    return {"feed": feed, "kind": kind.value, "step": step, "minute": minute, "packed": packed}


def _arrivals(tx: Transaction, case: Case, number: int, now: int) -> None:
    """Each minute's arrivals and each hour's; the ledger itself adds the current hour."""
    first, open_from = (now // DAY - case.days) * DAY, now // HOUR * HOUR
    products = max(round(case.per_minute(number)), 1)
    size = 40_000 * products
    one = {"feed": case.feed(number), "products": products, "bytes": size, "peak_1s_bytes": size}
    hour = {"feed": case.feed(number), "products": products * HOUR, "bytes": size * HOUR}
    minutes = [one | {"minute": minute} for minute in range(first, open_from)]
    tx.measured.latency._connection.execute(insert(traffic_minutes), minutes)
    hours = [hour | {"hour": at} for at in range(first // HOUR, open_from // HOUR)]
    tx.measured.latency._connection.execute(insert(traffic_hours), hours)
    begun = range(open_from, now + 1)
    tx.measured.traffic.add(TrafficMinute(case.feed(number), minute, products, size, size) for minute in begun)


def _configured(tx: Transaction, case: Case) -> None:
    for site in range(case.sites):
        tx.sites.add(Site(case.site(site)))
    for number in range(case.feeds):
        feed = case.feed(number)
        tx.feeds.add(Feed(feed))
        tx.planning.legs.count([LegCounters(feed, 1, number + 1, Transport.MULTICAST, case.sites, 9, 9, 9, 0, 0, 9)])
        for site in range(case.sites):
            tx.subscriptions.add(Subscription(0, case.site(site), feed))
