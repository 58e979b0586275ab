"""Hubs in fixed states: one without anything, a healthy one, one with incidents, one with 500 sites and 30 feeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product

from downburst.domain.alarms import AlarmKind, Condition
from downburst.domain.backlog import FeedBacklog
from downburst.domain.events import (
    BacklogSeen,
    FeedTraffic,
    LegTraffic,
    SessionChanged,
    SessionTraffic,
    SiteBacklog,
    SiteProgress,
    TrafficSeen,
)
from downburst.domain.feeds import Feed, FeedClass, TrafficMinute
from downburst.domain.plans import Candidate, Transport
from downburst.domain.receipts import Batch
from downburst.domain.sites import Place, Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock, to_us
from downburst.foundation.rates import rate_text
from downburst.ledger import Transaction
from downburst_api.runtime import Runtime
from factories import multicast, plan, settled, sketch_row, unicast
from kit.looks.fleet import DOWN, FEEDS, LATE, NOW, SITES
from kit.looks.late_product import traced

NO_MINUTES = range(0)
NEVER: Mapping[str, range] = {}


def empty(_hub: Runtime) -> None:
    """A hub on its first day."""


def healthy(hub: Runtime, *, silent: Mapping[str, range] = NEVER) -> None:
    """Six sites with five feeds for a day, all within their objectives; `silent`: minutes ago without a report."""
    with hub.ledger.transaction() as tx:
        _configured(tx, FEEDS, SITES)
        day(tx, list(FEEDS), list(SITES), silent=silent)
    _connected(hub, list(SITES))
    _second_of_traffic(hub, list(FEEDS), list(SITES))


def incident(hub: Runtime, *, silent: Mapping[str, range] = NEVER) -> None:
    """The healthy hub, but one site has been down for 25 minutes and another is late."""
    healthy(hub, silent=silent)
    since = NOW - timedelta(minutes=25)
    minute = minute_of(NOW)
    with hub.ledger.transaction() as tx:
        tx.measured.latency.add(
            *(
                sketch_row([9_000.0 + 700 * back] * 8, feed="NEXRAD2", site=LATE, minute=minute - back)
                for back in range(12)
            )
        )
    down = Condition(AlarmKind.SITE_DOWN, f"{DOWN} is down", f"call {DOWN}", site=DOWN)
    _raise(hub, since, down)
    sentence = "ufrj.br has NEXRAD2 within 13 s instead of 2 s"
    late = Condition(AlarmKind.OBJECTIVE, sentence, "read the path of ufrj.br", feed="NEXRAD2", site=LATE)
    _raise(hub, NOW - timedelta(minutes=11), late)
    hub.live.apply(SessionChanged(DOWN, "closed", since, "192.0.2.3:41000", reason="the connection was cut"))
    lacking = FeedBacklog("CONDUIT", True, 27_412, 2_770_000_000, to_us(since))
    hub.live.apply(BacklogSeen((SiteBacklog(DOWN, (lacking,)),)))
    traced(hub)


def many(hub: Runtime) -> None:
    """500 sites with 30 feeds each."""
    feeds = {f"FEED{number:02}": FeedClass.GRID for number in range(30)}
    sites = {f"site{number:03}.example": _spread(number) for number in range(500)}
    minute = minute_of(NOW)
    pairs = list(product(feeds, sites))
    with hub.ledger.transaction() as tx:
        _configured(tx, feeds, sites)
        sketches = tuple(sketch_row([8.0, 11.0, 240.0], feed=feed, site=site, minute=minute) for feed, site in pairs)
        frontiers = tuple(settled(1_000, stored=1_000, feed=feed, site=site) for feed, site in pairs)
        tx.measured.batches.load(Batch("many", sketches, (), frontiers))
        tx.measured.traffic.add([TrafficMinute(feed, minute, 20, 600_000, 100_000) for feed in feeds])
    _connected(hub, list(sites))
    _second_of_traffic(hub, list(feeds), list(sites))


SCENES: dict[str, Callable[[Runtime], None]] = {
    "empty": empty,
    "healthy": healthy,
    "incident": incident,
    "many": many,
}


def _raise(hub: Runtime, at: datetime, condition: Condition) -> None:
    """Raises an alarm at a time that is not before the last one's."""
    assert isinstance(hub.clock, FakeClock)
    hub.clock.advance((at - hub.clock.now()).total_seconds())
    with hub.ledger.transaction() as tx:
        tx.alerting.alarms.raise_(condition)


def _configured(tx: Transaction, feeds: dict[str, FeedClass], sites: dict[str, Place]) -> None:
    for name, kind in feeds.items():
        tx.feeds.add(Feed(name, kind))
    for site, place in sites.items():
        tx.sites.add(Site(site, organisation=f"Organisation of {site}", place=place))
    for name, site in product(feeds, sites):
        tx.subscriptions.add(Subscription(0, site, name))
    for number, name in enumerate(feeds):
        copies, group = _candidates(number, len(sites))[:2]
        saved = rate_text((copies.egress_bps or 0.0) - (group.egress_bps or 0.0))
        if transport_of(number) is Transport.MULTICAST:
            leg, reason, flip = multicast(100 + number, *sites), f"multicast: one copy for all saves {saved}", {}
        else:
            leg, reason = unicast(100 + number, *sites), f"unicast: a group would save only {saved}"
            flip = {"flip": "it would be multicast from 9 sites on"}
        made = plan(name, leg, reason=reason, made_at=NOW - timedelta(hours=3))
        tx.planning.plans.append(replace(made, candidates=_candidates(number, len(sites)), figures=flip))


def _candidates(number: int, sites: int) -> tuple[Candidate, ...]:
    latencies = {"predicted_p50_ms": 20.0, "predicted_p99_ms": 400.0}
    rate_bps = 8.0 * bytes_a_second(number)
    return (
        Candidate(Transport.UNICAST, True, "one copy a site", egress_bps=rate_bps * sites, **latencies),
        Candidate(Transport.MULTICAST, True, "one copy for all", egress_bps=rate_bps * 1.1, **latencies),
        Candidate(Transport.STATIC_CIRCUIT, False, "no circuit is reserved to its sites"),
        Candidate(Transport.DYNAMIC_CIRCUIT, False, "no offer of circuits reaches its sites"),
    )


def day(
    tx: Transaction,
    feeds: Sequence[str],
    sites: Sequence[str],
    *,
    silent: Mapping[str, range] = NEVER,
    minutes_ago: int = 0,
) -> None:
    """Latencies and traffic of a day that ended so long ago, every five minutes."""
    last = minute_of(NOW) - minutes_ago
    for (number, feed), (place, site) in product(enumerate(feeds), enumerate(sites)):
        rows = (
            sketch_row([_latency_ms(number, place, back)] * 6, feed=feed, site=site, minute=last - back)
            for back in range(0, 1_440, 5)
            if back not in silent.get(site, NO_MINUTES)
        )
        tx.measured.latency.add(*rows)
    tx.measured.traffic.add(
        [
            _minute(feed, last - back, bytes_a_second(number), share=0.96 + 0.001 * ((back * 31) % 97))
            for (number, feed), back in product(enumerate(feeds), range(0, 1_440, 5))
        ]
    )
    sent = 60 * sum(leg.egress_bytes for leg in _legs(feeds, len(sites)))
    copies = 60 * len(sites) * sum(bytes_a_second(number) for number, _ in enumerate(feeds))
    for back in range(1_440):
        tx.measured.egress.add(last - back, egress_bytes=sent, unicast_equivalent_bytes=copies)


def _minute(feed: str, minute: int, second_bytes: int, *, share: float) -> TrafficMinute:
    return TrafficMinute(feed, minute, 600, int(60 * share * second_bytes), int(1.3 * second_bytes))


def _connected(hub: Runtime, sites: Sequence[str]) -> None:
    for site in sites:
        hub.live.apply(SessionChanged(site, "connected", NOW - timedelta(hours=20), "192.0.2.3:41000"))


def _second_of_traffic(hub: Runtime, feeds: Sequence[str], sites: Sequence[str]) -> None:
    now_us = to_us(NOW)
    progress = tuple(
        SiteProgress(feed, 1_000, 0, transport_of(number), 100 + number) for number, feed in enumerate(feeds)
    )
    arrived = tuple(FeedTraffic(feed, 10, bytes_a_second(number), (), 1_000) for number, feed in enumerate(feeds))
    sessions = tuple(SessionTraffic(site, 120, 500, 40_000, progress) for site in sites)
    hub.live.apply(TrafficSeen(now_us - 1_000_000, now_us, arrived, _legs(feeds, len(sites)), sessions, 0))


def _legs(feeds: Sequence[str], sites: int) -> tuple[LegTraffic, ...]:
    """A second of each feed, as in the plans."""
    return tuple(_leg(number, feed, sites) for number, feed in enumerate(feeds))


def _leg(number: int, feed: str, sites: int) -> LegTraffic:
    copies = 1 if transport_of(number) is Transport.MULTICAST else sites
    content = bytes_a_second(number) * copies
    return LegTraffic(
        leg=100 + number,
        feed=feed,
        egress_bytes=int(1.04 * content),
        repair_bytes=content // 40 if copies == 1 else 0,
        products=10,
        product_bytes=content,
        sites=sites,
        backlog_bytes=0,
        transport=transport_of(number),
    )


def transport_of(number: int) -> Transport:
    """Every second feed leaves by multicast."""
    return Transport.MULTICAST if number % 2 == 0 else Transport.UNICAST


def bytes_a_second(number: int) -> int:
    """Copies of the feeds that leave by unicast cost little."""
    return 1_500_000 if transport_of(number) is Transport.MULTICAST else 100_000


def _latency_ms(feed: int, place: int, minutes_ago: int) -> float:
    """Slower at sites farther away, and twice a day: every shade of the strip is there."""
    return 150.0 + 220 * place + 40 * feed + abs(minutes_ago % 720 - 360)


def _spread(number: int) -> Place:
    return Place("", -50 + (number * 37) % 110, -170 + (number * 61) % 340)


def minute_of(at: datetime) -> int:
    """Minutes since 1970."""
    return to_us(at) // 60_000_000
