"""Plans, latency, overview, metrics and health return the stored data."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from downburst.domain.alarms import AlarmKind, Condition
from downburst.domain.backlog import FeedBacklog
from downburst.domain.events import (
    ActionFailed,
    BacklogSeen,
    FeedTraffic,
    LegTraffic,
    NodeChanged,
    SessionChanged,
    SessionTraffic,
    SiteBacklog,
    SiteProgress,
    Streams,
    TrafficSeen,
)
from downburst.domain.faults import Fault
from downburst.domain.feeds import Feed
from downburst.domain.latency import LatencyKind
from downburst.domain.plans import Candidate, LegCounters, Transport
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.foundation.clock import FakeClock, to_us
from downburst.live.state import RetentionWarning
from downburst_api.latency.service import minute_of
from downburst_api.overview.shared import OLDEST_S, SharedOverview
from downburst_api.overview.stream import overviews
from factories import multicast, plan, settled, sketch_row, unicast
from unit.api.conftest import Asked


@pytest.fixture
def told(hub: Asked, clock: FakeClock) -> Asked:
    """A feed with two sites, one connected and behind; a change from unicast to multicast; some latencies."""
    minute = minute_of(clock.now())
    with hub.runtime.ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        for name in ("a.edu", "b.edu"):
            tx.sites.add(Site(name))
            tx.subscriptions.add(Subscription(0, name, "NGRID"))
        tx.planning.plans.append(plan("NGRID", unicast(1, "a.edu", "b.edu"), reason="at first"))
        multi = plan("NGRID", multicast(2, "a.edu", "b.edu"), reason="cheaper")
        refused = Candidate(Transport.STATIC_CIRCUIT, feasible=False, reason="none is offered")
        tx.planning.plans.append(replace(multi, candidates=(refused,), figures={"predicted_over_measured": 0.9}))
        tx.planning.legs.count(
            [
                LegCounters("NGRID", 1, 1, Transport.UNICAST, 2, 20, 2000, 2100, 0, 50, 2000),
                LegCounters("NGRID", 2, 2, Transport.MULTICAST, 2, 10, 1000, 1100, 30, 50, 2000),
                LegCounters("NGRID", 2, 1, Transport.UNICAST, 2, 1, 100, 105, 0, 0, 100),
            ]
        )
        tx.measured.latency.add(
            sketch_row([10, 20, 30, 4000], minute=minute, site="a.edu"),
            sketch_row([-5], minute=minute - 1, site="b.edu", transport=Transport.MULTICAST),
            sketch_row([99], minute=minute, site="a.edu", kind=LatencyKind.END_TO_END),
            sketch_row([1], minute=minute - 90, site="a.edu"),
        )
        tx.measured.settled.advance(settled(7, stored=6, site="a.edu"), at=clock.now())
    _live(hub, clock)
    return hub


def _live(hub: Asked, clock: FakeClock) -> None:
    hub.runtime.live.apply(SessionChanged("a.edu", "connected", clock.now(), "192.0.2.1:5"))
    at = to_us(clock.now())
    for second, size in enumerate((1000, 0, 0, 3000)):
        hub.runtime.live.apply(
            TrafficSeen(
                at + second * 1_000_000,
                at + (second + 1) * 1_000_000,
                (FeedTraffic("NGRID", 1, size, (size,), 9),),
                (LegTraffic(2, "NGRID", 2000, 0, 1, size, 2, 0, Transport.MULTICAST),),
                (
                    SessionTraffic(
                        "a.edu",
                        1500,
                        250,
                        500,
                        (SiteProgress("NGRID", 7, 2, Transport.MULTICAST, 2),),
                        Streams(open=3, planned=4, reason="it helps"),
                    ),
                ),
                0,
            )
        )
    clock.advance(5)


async def test_the_overview_has_what_the_page_shows(told: Asked) -> None:
    seen = await told.ask("GET", "/v1/overview")
    parts = "hub now faults status incidents throughput feeds sites upstreams ldm_sources circuits"
    assert set(seen) == set(parts.split())
    assert seen["hub"]["node"] == {"running": True, "restarts": 0}
    assert set(seen["hub"]["probes"]) == {one.name for one in told.runtime.probes.all()}
    assert seen["hub"]["uptime_s"] == 5
    throughput = seen["throughput"]
    assert (throughput["in_bps"], throughput["out_bps"], throughput["unicast_equivalent_bps"]) == (8000, 16000, 16000)
    assert (throughput["egress_bytes"], throughput["unicast_equivalent_bytes"]) == (3305, 4100)
    feed = seen["feeds"][0]
    assert (feed["fan_out"], feed["products"], feed["bytes"], feed["head"]) == (2, 4, 4000, 9)
    assert feed["rate_history"] == [8000, 0, 0, 24000]
    assert (feed["peak_1s_bps"], feed["mean_bps"], feed["silent_share"]) == (24000, 8000, 0.5)
    site = seen["sites"][0]
    assert (site["state"], site["connected"], site["behind_products"], site["stored"]) == ("connected", True, None, 6)
    assert (site["clock_offset_ms"], site["clock_bound_ms"], site["round_trip_ms"]) == (1.5, 0.25, 0.5)
    progress = {
        "feed": "NGRID",
        "settled_to": 7,
        "pending": 2,
        "transport": "multicast",
        "leg": 2,
    }
    assert site["feeds"] == [progress]


async def test_a_site_that_has_trouble_says_so_with_its_feed(told: Asked, clock: FakeClock) -> None:
    failed = ActionFailed("pqact.conf:3", 1, "no such file", "nam.grib2", 7)
    progress = SiteProgress("NGRID", 7, 2, Transport.UNICAST, 1, "no space left", 3, failed)
    session = SessionTraffic("a.edu", 0, 0, 0, (progress,))
    told.runtime.live.apply(TrafficSeen(0, 1_000_000, (), (), (session,), 0))
    ((shown,),) = [
        site["feeds"] for site in (await told.ask("GET", "/v1/overview"))["sites"] if site["site"] == "a.edu"
    ]
    assert (shown["trouble"], shown["late"], shown["action_failed"]["rule"]) == ("no space left", 3, "pqact.conf:3")


async def test_what_a_site_lacks_is_the_same_on_every_page_and_in_the_metrics(told: Asked, clock: FakeClock) -> None:
    oldest_us = to_us(clock.now()) - 720_000_000
    lacking = (
        FeedBacklog("NGRID", True, 4_000, 1_000_000, oldest_us, 17, 5_000),
        FeedBacklog("WARN", True, 300, 500, oldest_us + 1),
        FeedBacklog("OTHER", False),
    )
    told.runtime.live.apply(BacklogSeen((SiteBacklog("b.edu", lacking),)))
    overview = await told.ask("GET", "/v1/overview")
    (in_overview,) = [one for one in overview["sites"] if one["site"] == "b.edu"]
    (in_list,) = [one for one in await told.ask("GET", "/v1/sites") if one["site"] == "b.edu"]
    alone = await told.ask("GET", "/v1/sites/b.edu")
    wanted = {
        "behind_products": 4_300,
        "behind_bytes": 1_000_500,
        "behind_s": 720,
        "lost_products": 17,
        "lost_bytes": 5_000,
        "behind_counting": False,
        "state": "never-enrolled",
        "state_words": "never enrolled",
        "connected": False,
    }
    for shown in (in_overview, in_list, alone):
        assert {name: shown[name] for name in wanted} == wanted
    assert [one["known"] for one in alone["backlog"]] == [True, False, True]
    (fault,) = [one for one in overview["faults"] if one["site"] == "b.edu"]
    assert fault["sentence"].endswith(
        "it lacks 4,300 products (1.0 MB), the oldest 12 min old; 17 products (5.0 kB) left the log before delivery"
    )
    metrics = (await told.client.get("/metrics")).text
    for name, value in (
        ("products", "4300"),
        ("bytes", "1000500"),
        ("oldest_seconds", "720.0"),
        ("lost_products", "17"),
    ):
        assert f'downburst_pending_{name}{{site="b.edu"}} {value}\n' in metrics
    told.runtime.live.apply(NodeChanged(clock.now(), running=False, restarts=1))
    assert (await told.ask("GET", "/v1/sites/b.edu"))["behind_products"] is None


async def test_a_site_that_another_hub_serves_stands_by(told: Asked, clock: FakeClock) -> None:
    for stand_by in (True, False):
        told.runtime.live.apply(SessionChanged("a.edu", "connected", clock.now(), "192.0.2.1:5", stand_by=stand_by))
        site = (await told.ask("GET", "/v1/overview"))["sites"][0]
        assert (site["connected"], site["stand_by"]) == (True, stand_by)
    told.runtime.live.apply(SessionChanged("a.edu", "closed", clock.now(), "192.0.2.1:5", stand_by=True))
    assert not (await told.ask("GET", "/v1/overview"))["sites"][0]["stand_by"]


async def test_a_site_shows_its_data_connections(told: Asked) -> None:
    session = (await told.ask("GET", "/v1/sites/a.edu"))["session"]
    connections = {"open": 3, "planned": 4, "reason": "it helps"}
    assert session == {"data_connections": connections, "clock": None, "readings": {}}


async def test_the_overview_explains_the_plan(told: Asked) -> None:
    shown = (await told.ask("GET", "/v1/overview"))["feeds"][0]["plan"]
    assert (shown["version"], shown["transport"], shown["reason"]) == (2, "multicast", "cheaper")
    assert [(leg["leg"], leg["egress_bytes"], leg["sites"]) for leg in shown["legs"]] == [(2, 1100, 2), (1, 105, 2)]
    assert shown["candidates"][0]["reason"] == "none is offered"


async def test_the_overview_tells_what_is_wrong_worst_first(told: Asked, clock: FakeClock) -> None:
    with told.runtime.ledger.transaction() as tx:
        tx.measured.faults.add(Fault(clock.now(), "the node ended", next_step="read the log"))
    told.node.running = False
    faults = (await told.ask("GET", "/v1/overview"))["faults"]
    assert [(fault["severity"], fault["site"]) for fault in faults] == [
        ("critical", None),
        ("warning", None),
        ("information", "b.edu"),
    ]
    assert faults[2]["sentence"] == "b.edu: never enrolled"
    assert all(fault["next"] for fault in faults)
    clock.advance(3600)
    told.node.running = True
    assert len((await told.ask("GET", "/v1/overview"))["faults"]) == 1
    away = Condition(AlarmKind.SITE_DOWN, "b.edu is not connected", "look there", site="b.edu")
    await told.runtime.ledger.write(lambda tx: tx.alerting.alarms.raise_(away))
    (fault,) = (await told.ask("GET", "/v1/overview"))["faults"]
    assert (fault["severity"], fault["alarm"], fault["silence"]) == ("critical", 1, None)
    await told.ask("POST", "/v1/silences", 201, json={"minutes": 60, "alarm": 1})
    (fault,) = (await told.ask("GET", "/v1/overview"))["faults"]
    assert (fault["silence"]["by"], fault["silence"]["kind"]) == ("local", "site-down")


async def test_a_log_shorter_than_the_longest_outage_is_wrong_now(told: Asked, clock: FakeClock) -> None:
    warning = RetentionWarning(clock.now(), "NGRID is kept for 2 h", "raise it: downburst feeds set 'NGRID'")
    told.runtime.live.retention_warnings = {"NGRID": warning}
    faults = (await told.ask("GET", "/v1/overview"))["faults"]
    shown = [(fault["feed"], fault["sentence"], fault["next"]) for fault in faults if fault["feed"]]
    assert shown == [("NGRID", warning.problem, warning.step)]


async def test_a_site_that_can_not_store_is_wrong_though_it_is_connected(told: Asked, clock: FakeClock) -> None:
    full = SiteProgress("NGRID", 7, 2, Transport.UNICAST, 1, trouble="No space left on device")
    at = to_us(clock.now())
    seen = TrafficSeen(at, at + 1_000_000, (), (), (SessionTraffic("a.edu", None, None, None, (full,)),), 0)
    told.runtime.live.apply(seen)
    faults = (await told.ask("GET", "/v1/overview"))["faults"]
    fault = next(fault for fault in faults if fault["site"] == "a.edu")
    assert fault["sentence"] == "a.edu can't store NGRID: No space left on device"
    assert fault["feed"] == "NGRID"
    assert "repair the disk" in fault["next"]
    listed = {site["site"]: site["troubles"] for site in await told.ask("GET", "/v1/sites")}
    assert listed == {"a.edu": {"NGRID": "No space left on device"}, "b.edu": {}}
    assert (await told.ask("GET", "/v1/sites/a.edu"))["troubles"] == listed["a.edu"]
    well = replace(full, trouble=None)
    told.runtime.live.apply(replace(seen, sessions=(replace(seen.sessions[0], feeds=(well,)),)))
    faults = (await told.ask("GET", "/v1/overview"))["faults"]
    assert "a.edu" not in [fault["site"] for fault in faults]


async def test_latency_is_told_by_path_and_narrowed(told: Asked) -> None:
    rows = await told.ask("GET", "/v1/latency")
    assert [(row["site"], row["transport"], row["kind"], row["count"]) for row in rows] == [
        ("a.edu", "unicast", "distribution", 4),
        ("a.edu", "unicast", "end-to-end", 1),
        ("b.edu", "multicast", "distribution", 1),
    ]
    assert rows[0]["p50"] == pytest.approx(20, rel=0.02)
    assert (rows[0]["max"], rows[0]["bound"], rows[2]["negative"]) == (4000, 0.5, 1)
    assert (rows[0]["certainty"], rows[2]["certainty"]) == ("known", "clock")
    assert rows[2]["p50"] == pytest.approx(-5, rel=0.02)
    assert len(await told.ask("GET", "/v1/latency?site=b.edu")) == 1
    assert await told.ask("GET", "/v1/latency?transport=multicast&minutes=1") == []
    assert (await told.ask("GET", "/v1/latency?minutes=200"))[0]["count"] == 5
    await told.problem("GET", "/v1/latency?feed=NONE", 404, "unknown-feed")
    await told.problem("GET", "/v1/latency?minutes=0", 400, "bad-request")


async def test_plans_have_a_history_with_what_each_cost(told: Asked) -> None:
    history = await told.ask("GET", "/v1/feeds/NGRID/plans")
    assert [entry["version"] for entry in history] == [2, 1]
    assert (history[1]["products"], history[1]["legs"][0]["bytes"]) == (20, 2000)
    current = await told.ask("GET", "/v1/plans")
    assert [(entry["feed"], entry["version"], entry["pin"]) for entry in current] == [("NGRID", 2, None)]
    totals = await told.ask("GET", "/v1/totals")
    assert (totals["egress_bytes"], totals["unicast_equivalent_bytes"]) == (3305, 4100)


async def test_health_follows_the_node(hub: Asked) -> None:
    await hub.problem("GET", "/healthz", 503, "probe-failed")
    await hub.runtime.probes.look()
    assert (await hub.ask("GET", "/healthz"))["status"] == "ok"
    assert (await hub.ask("GET", "/v1/status"))["sites_address"] == ["127.0.0.1:7370"]
    hub.node.running = False
    await hub.problem("GET", "/healthz", 503, "node-away")


async def test_the_page_says_how_it_is_built(hub: Asked) -> None:
    answer = await hub.client.get("/")
    assert "make setup" in answer.text
    assert (await hub.client.get("/docs")).status_code == 200


async def always() -> bool:
    return True


async def test_the_live_line_tells_the_overview_and_ends_with_the_bus(told: Asked) -> None:
    line = overviews(told.runtime, always)
    first = await anext(line)
    assert (first.event, json.loads(str(first.data))["feeds"][0]["feed"]) == ("overview", "NGRID")
    told.runtime.bus.close()
    assert [event.event async for event in line] == []


async def test_a_slow_page_is_told_what_it_lost(told: Asked) -> None:
    line = overviews(told.runtime, always)
    await anext(line)
    for _ in range(70):
        told.runtime.bus.publish(SessionChanged("a.edu", "closed", told.runtime.clock.now(), "p"))
    second = await anext(line)
    assert (second.event, second.data) == ("lost", "6")
    await line.aclose()


async def test_many_pages_cost_one_overview(clock: FakeClock) -> None:
    made = 0

    async def make() -> dict[str, Any]:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        return {"made": made}

    shared = SharedOverview(clock)
    assert set(await asyncio.gather(*(shared.text(make) for _ in range(50)))) == {'{"made":1}'}
    clock.advance(OLDEST_S * 1.01)
    assert await shared.text(make) == '{"made":2}'
    assert await shared.fresh(make) == '{"made":3}', "whoever changed something sees it at once"
    assert await shared.text(make) == '{"made":3}'
