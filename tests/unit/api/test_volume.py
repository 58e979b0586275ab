"""The volume of feeds and the tree of hubs and sites, for every caller that may read published data."""

from dataclasses import replace
from datetime import datetime
from random import Random

import pytest

from downburst.domain.events import SiteProgress
from downburst.domain.feeds import TrafficMinute
from downburst.domain.plans import Transport
from downburst.domain.relays import SiteWay
from downburst.ledger import Transaction
from downburst.live.state import SiteSession
from downburst_api.latency.arrivals import hours_between, volumes
from factories import multicast, plan, unicast
from unit.api.conftest import Asked


def test_mean_and_greatest_hour_share_and_count_of_each_feed() -> None:
    minutes = [TrafficMinute("BIG", minute, 10, 3_000, 100) for minute in (0, 59, 60)]
    minutes.append(TrafficMinute("SMALL", 61, 1, 1_000, 1_000))
    big, small = volumes(minutes, begin=0, end=120)
    assert (big["feed"], big["bytes"], big["products"]) == ("BIG", 9_000, 30)
    assert (big["mean_bytes_per_hour"], big["max_bytes_per_hour"], big["share"]) == (4_500.0, 6_000, 0.9)
    assert big["products_per_hour"] == 15.0
    assert (small["feed"], small["share"]) == ("SMALL", 0.1)
    assert volumes([], begin=0, end=60) == []


@pytest.mark.parametrize("seed", range(30))
def test_the_mean_is_never_above_the_greatest_hour(seed: int) -> None:
    random = Random(seed)
    begin = random.randrange(1_000, 2_000)
    end = begin + random.choice([1, 7, 59, 60, 61, 100, 150, 600])
    edges = hours_between(begin, end)
    assert (edges[0], edges[-1]) == (begin, end)
    assert edges == sorted(set(edges))
    minutes = [TrafficMinute("F", random.randrange(begin, end), 1, random.randrange(1, 10**6), 0) for _ in range(20)]
    minutes.append(TrafficMinute("F", end - 1, 1, 10**7, 0))
    (row,) = volumes(minutes, begin=begin, end=end)
    assert row["mean_bytes_per_hour"] <= row["max_bytes_per_hour"] * (1 + 1e-9), f"seed {seed}"
    assert row["bytes"] == sum(one.bytes for one in minutes)


async def test_a_young_hub_is_measured_over_its_own_life(hub: Asked) -> None:
    minute = int(hub.runtime.clock.now().timestamp() // 60)
    arrived = [TrafficMinute("NGRID", minute - back, 1, 600, 600) for back in range(30)]
    await hub.runtime.ledger.write(lambda tx: tx.measured.traffic.add(arrived))
    found = await hub.ask("GET", "/v1/volume")
    assert found["hours_seen"] == 0.5
    assert found["feeds"][0]["mean_bytes_per_hour"] == pytest.approx(36_000)
    assert found["feeds"][0]["max_bytes_per_hour"] == pytest.approx(36_000)
    assert datetime.fromisoformat(found["since"]).timestamp() == (minute - 29) * 60


async def test_a_hub_without_products_has_seen_no_hours(hub: Asked) -> None:
    found = await hub.ask("GET", "/v1/volume")
    assert (found["hours_seen"], found["feeds"]) == (0, [])


async def test_the_tree_names_nobodys_contact_or_address(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    site = {"site": "unl.edu", "organisation": "University", "contact": "secret@unl.edu"}
    await hub.ask("POST", "/v1/sites", 201, json=site)
    await hub.ask("POST", "/v1/sites/unl.edu/subscriptions", 201, json={"feed": "NGRID"})
    now = hub.runtime.clock.now()
    progress = {"NGRID": SiteProgress("NGRID", 7, 0, Transport.MULTICAST, 3)}
    hub.runtime.live.sessions["unl.edu"] = SiteSession("unl.edu", True, now, peer="192.0.2.9:1", progress=progress)
    answer = await hub.client.get("/v1/tree")
    assert answer.json()["sites"] == [
        {
            "site": "unl.edu",
            "organisation": "University",
            "connected": True,
            "via": [],
            "circuit": None,
            "feeds": [{"feed": "NGRID", "transport": "multicast", "relay": None}],
        }
    ]
    assert "secret@" not in answer.text


async def test_the_tree_leads_from_the_hub_through_relays_to_sites(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    for site in ("unl.edu", "cma.edu"):
        await hub.ask("POST", "/v1/sites", 201, json={"site": site})
        await hub.ask("POST", f"/v1/sites/{site}/subscriptions", 201, json={"feed": "NGRID"})
    relay = {"address": "relay.secret.edu:7379", "fan_out": "group", "feeds": ["NGRID"], "sites": ["unl.edu"]}
    await hub.ask("PUT", "/v1/relays/campus", json=relay)
    leg = replace(multicast(7, "unl.edu"), relay="campus")

    def plan_and_way(tx: Transaction) -> None:
        tx.planning.plans.append(plan("NGRID", leg, unicast(1, "cma.edu")))
        tx.fleet.ways.put(SiteWay("cma.edu", ("campus",), "faster"))

    await hub.runtime.ledger.write(plan_and_way)
    answer = await hub.client.get("/v1/tree")
    tree = answer.json()
    assert tree["relays"] == [{"relay": "campus", "connected": False, "sites": ["unl.edu"]}]
    assert {site["site"]: (site["via"], site["feeds"][0]["relay"]) for site in tree["sites"]} == {
        "unl.edu": ([], "campus"),
        "cma.edu": (["campus"], None),
    }
    assert "relay.secret.edu" not in answer.text
    assert "192.0.2.9" not in answer.text


async def test_arrivals_come_by_the_minute_hour_or_day_and_as_a_file(hub: Asked) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    minute = int(hub.runtime.clock.now().timestamp() // 60)
    arrived = [TrafficMinute("NGRID", minute - back, 2, 600, 300) for back in (0, 1, 50, 120)]
    await hub.runtime.ledger.write(lambda tx: tx.measured.traffic.add(arrived))
    by_minute = await hub.ask("GET", "/v1/volume/history", params={"feed": "NGRID", "minutes": 62})
    assert (by_minute["step_minutes"], len(by_minute["points"])) == (1, 3)
    by_hour = await hub.ask("GET", "/v1/volume/history", params={"feed": "NGRID", "minutes": 1_440})
    assert by_hour["step_minutes"] == 60
    assert sum(point["bytes"] for point in by_hour["points"]) == 2_400
    past = await hub.ask("GET", "/v1/volume/history", params={"feed": "NGRID", "minutes": 30, "until": "1h"})
    assert [point["products"] for point in past["points"]] == []
    wanted: dict[str, str | int] = {"feed": "NGRID", "minutes": 2, "format": "csv"}
    answer = await hub.client.get("/v1/volume/history", params=wanted)
    assert answer.headers["content-type"].startswith("text/csv")
    header, *lines = answer.text.splitlines()
    assert header == "at,products,bytes,peak_1s_bytes"
    assert [line.split(",")[1:] for line in lines] == [["2", "600", "300"]] * 2
    table = await hub.client.get("/v1/volume", headers={"accept": "text/csv"})
    assert table.text.splitlines()[0].startswith("feed,bytes,products,mean_bytes_per_hour")
    assert 'filename="volume.csv"' in table.headers["content-disposition"]
