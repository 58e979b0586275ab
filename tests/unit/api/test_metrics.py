"""The Prometheus metrics of a hub: they follow the conventions, match its state, and counters never decrease."""

import asyncio
import gzip
import threading
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from downburst.domain.alarms import AlarmKind, Condition
from downburst.domain.backlog import FeedBacklog
from downburst.domain.events import (
    BacklogSeen,
    FeedTraffic,
    NodeChanged,
    SessionChanged,
    SessionTraffic,
    SiteBacklog,
    SiteProgress,
    TrafficSeen,
)
from downburst.domain.feeds import Feed
from downburst.domain.latency import LatencyKind, SiteClock
from downburst.domain.plans import LegCounters, Transport
from downburst.domain.readings import HostReading
from downburst.domain.receipts import Batch
from downburst.domain.sites import Site
from downburst.exposition import CATALOGUE
from downburst.foundation.clock import FakeClock, to_us
from downburst.ledger import Ledger
from downburst.sketches.sheet import Sheet
from downburst_api.latency.service import minute_of
from downburst_api.metrics import scrape
from downburst_api.metrics.counted import Counted
from downburst_api.metrics.histograms import OPEN_MINUTES, Histograms, Series
from downburst_api.metrics.sites import version_of
from factories import multicast, plan, settled, sketch_row, unicast
from unit.api.conftest import Asked
from unit.packaging.metrics_table import series_at

DELIVERY = "downburst_delivery_latency_seconds"


@pytest.fixture
def told(hub: Asked, clock: FakeClock) -> Asked:
    """A feed and two sites, one of them connected."""
    with hub.runtime.ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        for name in ("a.edu", "b.edu"):
            tx.sites.add(Site(name))
        tx.planning.plans.append(plan("NGRID", unicast(1, "a.edu"), reason="at first"))
        after = plan("NGRID", multicast(2, "a.edu"), reason="cheaper")
        tx.planning.plans.append(replace(after, figures={"predicted_over_measured": 0.9}))
        tx.planning.legs.count(
            [
                LegCounters("NGRID", 1, 1, Transport.UNICAST, 2, 20, 2000, 2100, 0, 50, 2000),
                LegCounters("NGRID", 2, 2, Transport.MULTICAST, 2, 10, 1000, 1100, 30, 50, 2000),
                LegCounters("NGRID", 2, 1, Transport.UNICAST, 2, 1, 100, 105, 0, 0, 100),
            ]
        )
        minute = minute_of(clock.now())
        tx.measured.latency.add(
            sketch_row([10, 20, 30, 4000], minute=minute, site="a.edu"),
            sketch_row([99], minute=minute, site="a.edu", kind=LatencyKind.END_TO_END),
        )
        tx.alerting.alarms.raise_(Condition(AlarmKind.SILENCE, "it is silent", "look", feed="NGRID"))
        tx.alerting.alarms.raise_(Condition(AlarmKind.SITE_DOWN, "it is away", "look", site="b.edu"))
    live, at = hub.runtime.live, to_us(clock.now())
    live.apply(SessionChanged("a.edu", "connected", clock.now(), "192.0.2.1:5", "downburst-node 0.1.0"))
    reading = HostReading(2, 17, 65_536, 131_072, 5_000_000, demotions=3)
    progress = SiteProgress("NGRID", 7, 2, Transport.MULTICAST, 2, reading=reading)
    session = SessionTraffic(
        "a.edu",
        1500,
        250,
        500,
        (progress,),
        clock=SiteClock(synchronised=False, error_us=16_000_000, estimated_error_us=9),
    )
    live.apply(TrafficSeen(at, at + 1_000_000, (FeedTraffic("NGRID", 1, 1000, (1000,), 9),), (), (session,), 0))
    lacking = FeedBacklog("NGRID", known=True, products=2, bytes=300, oldest_us=at - 60_000_000, lost_products=5)
    live.apply(BacklogSeen((SiteBacklog("a.edu", (lacking,)),)))
    return hub


async def samples(hub: Asked) -> dict[str, float]:
    """All samples by name and labels in the text's order."""
    text = (await hub.client.get("/metrics")).text
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    }


async def test_every_value_is_that_of_the_hub(told: Asked) -> None:
    shown = await samples(told)
    labels = 'feed="NGRID",site="a.edu",transport="unicast"'
    expected = {
        f'{DELIVERY}_bucket{{{labels},le="0.025"}}': 2,
        f'{DELIVERY}_bucket{{{labels},le="5"}}': 4,
        f'{DELIVERY}_bucket{{{labels},le="+Inf"}}': 4,
        f"{DELIVERY}_count{{{labels}}}": 4,
        f"{DELIVERY}_sum{{{labels}}}": 4.06,
        'downburst_end_to_end_latency_seconds_count{feed="NGRID",transport="unicast"}': 1,
        'downburst_egress_bytes_total{feed="NGRID",transport="unicast"}': 2205,
        'downburst_repair_bytes_total{feed="NGRID",transport="multicast"}': 30,
        'downburst_ingest_bytes_total{feed="NGRID"}': 1000,
        'downburst_lost_products_total{feed="NGRID",outcome="expired"}': 0,
        'downburst_plan_switches_total{feed="NGRID"}': 1,
        'downburst_predicted_over_measured_ratio{feed="NGRID"}': 0.9,
        'downburst_clock_error_bound_seconds{site="a.edu"}': 0.00025,
        'downburst_site_clock_synchronised{site="a.edu"}': 0,
        'downburst_site_clock_error_seconds{site="a.edu"}': 16,
        'downburst_transport_info{feed="NGRID",site="a.edu",transport="multicast"}': 1,
        'downburst_receive_dropped_datagrams_total{feed="NGRID",site="a.edu"}': 17,
        'downburst_receive_buffer_bytes{feed="NGRID",site="a.edu"}': 131_072,
        'downburst_receive_priority_losses_total{feed="NGRID",site="a.edu"}': 3,
        'downburst_pending_products{site="a.edu"}': 2,
        'downburst_site_up{site="a.edu"}': 1,
        'downburst_site_up{site="b.edu"}': 0,
        "downburst_sessions": 1,
        "downburst_node_up": 1,
    }
    assert {name: shown.get(name) for name in expected} == pytest.approx(expected)
    assert {name: value for name, value in shown.items() if name.startswith("downburst_alarms{")} == {
        'downburst_alarms{kind="silence",severity="warning",feed="NGRID",site=""}': 1,
        'downburst_alarms{kind="site-down",severity="critical",feed="",site="b.edu"}': 1,
    }
    (build,) = [name for name in shown if name.startswith("downburst_build_info{")]
    assert 'part="hub"' in build
    assert 0 < shown["downburst_disk_free_bytes"] <= shown["downburst_disk_size_bytes"]
    assert shown["process_resident_memory_bytes"] > 0


async def test_logs_are_told_while_the_node_answers(told: Asked) -> None:
    await told.ask("PUT", "/v1/feeds/NGRID/products/x", 404, content=b"x")
    await told.runtime.node.refresh()
    await told.ask("PUT", "/v1/feeds/NGRID/products/x", 201, content=b"x")
    shown = await samples(told)
    assert shown['downburst_log_products{feed="NGRID"}'] == 1
    assert shown['downburst_log_size_bytes{feed="NGRID"}'] == 2000
    assert shown['downburst_log_limit_bytes{feed="NGRID"}'] == 10_000_000_000
    assert shown['downburst_log_oldest_product_timestamp_seconds{feed="NGRID"}'] > 0


async def test_a_site_that_went_leaves_up_at_0_and_nothing_stale(told: Asked, clock: FakeClock) -> None:
    told.runtime.live.apply(SessionChanged("a.edu", "closed", clock.now(), "192.0.2.1:5"))
    of_site = {name: value for name, value in (await samples(told)).items() if 'site="a.edu"' in name}
    rest = {name: value for name, value in of_site.items() if not name.startswith(DELIVERY)}
    assert rest == {
        'downburst_site_up{site="a.edu"}': 0,
        'downburst_pending_products{site="a.edu"}': 2,
        'downburst_pending_bytes{site="a.edu"}': 300,
        'downburst_pending_oldest_seconds{site="a.edu"}': 60,
        'downburst_pending_lost_products{site="a.edu"}': 5,
    }
    told.runtime.live.apply(NodeChanged(clock.now(), running=False, restarts=1))
    assert not [name for name in await samples(told) if name.startswith("downburst_pending_")], "nobody counts now"


async def test_the_text_has_what_the_catalogue_describes_and_nothing_else(told: Asked) -> None:
    text = (await told.client.get("/metrics")).text
    found = {}
    for family in text_string_to_metric_families(text):
        total = "_total" if family.type == "counter" else ""
        found[family.name + total] = (family.type, family.documentation)
    ours = {name: of for name, of in found.items() if name.startswith(("downburst_", "wmo_wis2_"))}
    described = {one.name: one for part in ("Every process with a page", "Hub") for one in CATALOGUE[part]}
    assert ours == {name: (one.kind.value, one.help) for name, one in described.items()}


async def test_feeds_with_a_deadline_tell_the_outcomes_of_their_products(told: Asked) -> None:
    with told.runtime.ledger.transaction() as tx:
        tx.feeds.add(Feed("RADAR", deadline_ms=500))
        late = replace(settled(10, stored=7, feed="RADAR", site="a.edu"), late_at_hub=2, late_at_site=1)
        tx.measured.batches.load(Batch("late", (), (), (late,)))
    shown = await samples(told)
    found = {name: value for name, value in shown.items() if name.startswith("downburst_deadline_products")}
    counts = {"stored": 7, "late-at-hub": 2, "late-at-site": 1, "lost": 0}
    labels = 'feed="RADAR",site="a.edu"'
    assert found == {f'downburst_deadline_products{{{labels},outcome="{name}"}}': n for name, n in counts.items()}
    assert shown['downburst_lost_products_total{feed="RADAR",outcome="expired"}'] == 0, "no alarm: it is as ordered"


async def test_losses_begin_at_0_and_never_go_back(told: Asked, clock: FakeClock) -> None:
    name = 'downburst_lost_products_total{feed="NGRID",outcome="expired"}'
    ledger = told.runtime.ledger
    _lose(ledger, 5)
    told.runtime.counted = await ledger.read(lambda tx: Counted.at_start(tx, clock.now()))
    assert (await samples(told))[name] == 0, "what was lost before the start is no news"
    _lose(ledger, 3)
    assert (await samples(told))[name] == 3
    with ledger.transaction() as tx:
        tx.sites.remove("a.edu")
    assert (await samples(told))[name] == 3


def _lose(ledger: Ledger, products: int) -> None:
    with ledger.transaction() as tx:
        lost = replace(settled(10, stored=0, site="a.edu"), expired=products)
        tx.measured.batches.load(Batch(f"batch-{products}", (), (), (lost,)))


def test_histograms_begin_at_0_with_the_hub_and_count_what_comes_after() -> None:
    histograms = Histograms(first_open_minute=85)
    before = sketch_row([5, 50], minute=100)
    histograms.begin(Sheet.of_rows([before]))
    (series,) = histograms.follow(Sheet.of_rows([before]), now_minute=100)
    assert (sum(series.counts), series.sum_s) == (0, 0)
    grown = sketch_row([5, 50, 500], minute=100)
    for minute in (101, 200):
        (series,) = histograms.follow(Sheet.of_rows([grown]), now_minute=minute)
        assert [sum(series.counts), series.sum_s] == pytest.approx([1, 0.5])
    (series,) = histograms.follow(Sheet.empty(), now_minute=201)
    assert sum(series.counts) == 1


def test_a_closed_minute_is_counted_once_and_a_late_row_of_an_open_one_too() -> None:
    histograms = Histograms()
    old, recent = sketch_row([5], minute=10), sketch_row([5, 50], minute=100)
    assert _counted(histograms, old, recent, now_minute=100) == 3
    assert histograms.first_open_minute == 100 - OPEN_MINUTES
    grown = sketch_row([5, 50, 500], minute=100)
    assert _counted(histograms, grown, now_minute=101) == 4
    assert _counted(histograms, grown, now_minute=200) == 4
    assert _counted(histograms, now_minute=201) == 4


def _counted(histograms: Histograms, *rows: Any, now_minute: int) -> int:
    (series,) = histograms.follow(Sheet.of_rows(rows), now_minute=now_minute)
    return sum(series.counts)


def test_a_sum_does_not_fall_when_a_clock_makes_values_negative() -> None:
    histograms = Histograms()
    sums = []
    for values in ([100.0], [100.0, -60.0], [100.0, -60.0, 80.0]):
        (series,) = histograms.follow(Sheet.of_rows([sketch_row(values, minute=100)]), now_minute=100)
        sums.append(series.sum_s)
        assert series.counts[0] == sum(value < 0 for value in values)
    assert sums == pytest.approx([0.1, 0.1, 0.12])


def test_series_keep_their_place_when_others_come() -> None:
    histograms = Histograms()
    first, second = sketch_row([5], minute=10, site="b.edu"), sketch_row([50], minute=40, site="a.edu")
    list(histograms.follow(Sheet.of_rows([first]), now_minute=10))
    list(histograms.follow(Sheet.of_rows([first, second]), now_minute=40))
    found: list[Series] = list(histograms.follow(Sheet.of_rows([second]), now_minute=41))
    assert [(one.labels[1], one.sum_s) for one in found] == [("a.edu", 0.05), ("b.edu", 0.005)]


async def test_text_is_written_beside_the_event_loop_and_compressed_on_request(
    told: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    written = scrape._written

    def noted(*given: Any, **more: Any) -> bytes:
        threads.append(threading.current_thread())
        return written(*given, **more)

    monkeypatch.setattr(scrape, "_written", noted)
    plain = await told.client.get("/metrics", headers={"accept-encoding": "identity"})
    async with told.client.stream("GET", "/metrics", headers={"accept-encoding": "gzip"}) as answer:
        raw = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw).count(b"\n") == plain.text.count("\n")
    assert threading.main_thread() not in threads


async def test_scrapes_follow_each_other(told: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most = 0, 0
    logs = told.runtime.node.logs

    async def slow() -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return await logs()

    monkeypatch.setattr(told.runtime.node, "logs", slow)
    await asyncio.gather(*(told.client.get("/metrics") for _ in range(5)))
    assert most == 1


@pytest.mark.parametrize(
    ("software", "version"),
    [
        ("downburst-node 0.1.0", "0.1.0"),
        (None, "other"),
        ("downburst-node 1.2.3-" + "x" * 99, "other"),
        ("1\n", "other"),
    ],
)
def test_what_a_site_tells_of_itself_is_no_label_unless_it_is_a_version(software: str | None, version: str) -> None:
    assert version_of(software) == version


async def test_a_large_hub_has_as_many_lines_as_the_catalogue_says(hub: Asked, clock: FakeClock) -> None:
    sites, feeds = [f"s{number}.edu" for number in range(300)], [f"F{number}" for number in range(20)]
    minute = minute_of(clock.now())
    with hub.runtime.ledger.transaction() as tx:
        for feed in feeds:
            tx.feeds.add(Feed(feed))
        for site in sites:
            tx.sites.add(Site(site))
        rows = [sketch_row([5, 50], minute=minute, site=site, feed=feed) for site in sites for feed in feeds]
        tx.measured.latency.add(*rows)
    answer = await hub.client.get("/metrics")
    lines = [line for line in answer.text.splitlines() if line.startswith("downburst_delivery")]
    (delivery,) = [one for one in CATALOGUE["Hub"] if one.name == DELIVERY]
    assert len(lines) == series_at(delivery, {"feeds": 20, "sites": 300, "transports_used": 1}) == 120_000
