"""Relays over the API: their site records, states and reports, their log, and the refusals that change nothing."""

from dataclasses import replace
from typing import Any

import pytest

from downburst.domain.events import RelaySeen, SessionChanged, SitesChanged
from downburst.domain.relays import CoreCircuit, RelayReport, Segment, SiteWay, Tunnel
from downburst.foundation.clock import FakeClock
from unit.api.conftest import Asked

ROUTE = "/v1/relays/campus"
WANTED: dict[str, Any] = {
    "address": "relay.campus.edu:7379",
    "fan_out": "group",
    "sites": ["bergen", "oslo"],
    "feeds": ["NGRID"],
}
TUNNEL = Tunnel(
    *("oslo", "192.0.2.9:1", "198.51.100.1:2", "hub:7370", 60.0, 10**9, 4_000, 132_000_000),
    Segment(2_000, 1_000, "cubic", 10**8),
    Segment(70_000, None, "bbr", 9 * 10**7),
)


@pytest.fixture
async def sited(hub: Asked) -> Asked:
    """A hub with a feed and three sites, one of which takes the feed."""
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    for site in ("oslo", "bergen", "paris"):
        await hub.ask("POST", "/v1/sites", 201, json={"site": site})
    await hub.ask("POST", "/v1/sites/paris/subscriptions", 201, json={"feed": "NGRID"})
    return hub


async def test_a_relay_has_a_site_record_and_is_listed_as_a_relay(sited: Asked) -> None:
    made = await sited.ask("PUT", ROUTE, json=WANTED)
    assert {name: made[name] for name in WANTED} == WANTED
    assert (made["state"], made["connected"], made["tunnels"], made["reported_at"]) == (
        "never-enrolled",
        False,
        [],
        None,
    )
    assert await sited.ask("GET", "/v1/relays") == [made] == [await sited.ask("GET", ROUTE)]
    assert (await sited.ask("GET", "/v1/sites/campus"))["allow"] == ["NGRID"]
    assert (await sited.ask("POST", "/v1/sites/campus/tokens", 201))["token"]
    relays = {site["site"]: site["relay"] for site in await sited.ask("GET", "/v1/sites")}
    assert relays == {"bergen": False, "campus": True, "oslo": False, "paris": False}
    assert (await sited.ask("GET", "/v1/sites/campus"))["relay"] is True
    await sited.ask("DELETE", ROUTE, 204)
    for route in (ROUTE, f"{ROUTE}/log", "/v1/sites/campus"):
        await sited.problem("GET", route, 404, "not-found")
    await sited.problem("DELETE", ROUTE, 404, "not-found")


async def test_a_change_is_announced(sited: Asked) -> None:
    before = len(sited.node.fake.jobs)
    await sited.ask("PUT", ROUTE, json=WANTED)
    assert len(sited.node.fake.jobs) > before
    while not isinstance(await sited.events.next(), SitesChanged):
        pass


@pytest.mark.parametrize(
    ("status", "code", "given", "said"),
    [
        (400, "bad-request", {"address": "relay.campus.edu"}, "'relay.campus.edu' is not the address of a relay"),
        (400, "bad-request", {"address": "relay.campus.edu:0"}, "write HOST:PORT, for example"),
        (400, "bad-request", {"address": "a.edu:7379,b.edu:7379"}, "is not the address of a relay"),
        (400, "bad-request", {"address": "2001:db8::1:7379"}, "is not the address of a relay"),
        (400, "bad-request", {"address": "x" * 301 + ":1"}, "address: "),
        (400, "bad-request", {"address": None, "fan_out": None}, "relay campus carries nothing"),
        (400, "bad-request", {"feeds": []}, "relay campus may carry no feed"),
        (400, "bad-request", {"sites": ["campus"]}, "relay campus can't be behind itself"),
        (400, "bad-request", {"sites": [""]}, "sites.0: "),
        (400, "bad-request", {"sites": None}, "sites: "),
        (400, "bad-request", {"fan_out": "broadcast"}, "fan_out: "),
        (400, "bad-request", {"colour": "red"}, "colour: "),
        (404, "not-found", {"sites": ["nowhere"]}, "there is no site 'nowhere'"),
        (404, "unknown-feed", {"feeds": ["NOFEED"]}, "NOFEED"),
    ],
)
async def test_an_impossible_relay_is_one_sentence_and_changes_nothing(
    sited: Asked, status: int, code: str, given: dict[str, Any], said: str
) -> None:
    problem = await sited.problem("PUT", ROUTE, status, code, json=WANTED | given)
    assert said in problem["detail"]
    assert "\n" not in problem["detail"]
    assert await sited.ask("GET", "/v1/relays") == []
    await sited.problem("GET", "/v1/sites/campus", 404, "not-found")


async def test_a_circle_and_names_of_sites_with_subscriptions_are_refused(sited: Asked) -> None:
    await sited.ask("PUT", ROUTE, json=WANTED)
    await sited.ask("PUT", "/v1/relays/core", json={"address": "core.edu:7379", "sites": ["campus"]})
    problem = await sited.problem("PUT", ROUTE, 400, "bad-request", json=WANTED | {"sites": ["core"]})
    assert "relay campus would be behind itself, by way of core" in problem["detail"]
    problem = await sited.problem("PUT", "/v1/relays/paris", 409, "already-there", json=WANTED)
    assert "site 'paris' has subscriptions" in problem["detail"]
    await sited.problem("PUT", "/v1/relays/Cam%20pus", 400, "bad-id", json=WANTED)
    subscription = {"feed": "NGRID"}
    problem = await sited.problem("POST", "/v1/sites/campus/subscriptions", 400, "bad-request", json=subscription)
    assert "'campus' is a relay, which takes no products" in problem["detail"]
    assert (await sited.ask("GET", ROUTE))["sites"] == ["bergen", "oslo"]


async def test_the_newest_report_is_shown_while_the_relay_is_connected(sited: Asked, clock: FakeClock) -> None:
    await sited.ask("PUT", ROUTE, json=WANTED)
    live = sited.runtime.live
    live.apply(SessionChanged("campus", "connected", clock.now(), "198.51.100.1:9"))
    live.apply(RelaySeen(clock.now(), RelayReport("campus", (TUNNEL, replace(TUNNEL, site=None)), refused=3)))
    shown = await sited.ask("GET", ROUTE)
    assert (shown["state"], shown["refused"], shown["reported_at"]) == ("connected", 3, clock.now().isoformat())
    first, second = shown["tunnels"]
    assert (first["site"], first["near"]["loss_ppm"], first["onward"]["congestion"]) == ("oslo", 1_000, "bbr")
    assert second["site"] is None
    assert live.connected == 0, "a relay is no connected site"
    live.apply(SessionChanged("campus", "closed", clock.now(), "198.51.100.1:9", reason="its session ended"))
    gone = await sited.ask("GET", ROUTE)
    assert (gone["connected"], gone["tunnels"], gone["refused"]) == (False, [], 3)


async def test_a_relay_that_is_away_is_neither_a_fault_nor_a_metric_of_sites(sited: Asked, clock: FakeClock) -> None:
    await sited.ask("PUT", ROUTE, json=WANTED)
    live = sited.runtime.live
    live.apply(SessionChanged("campus", "closed", clock.now(), "198.51.100.1:9", reason="its host is off"))
    clock.advance(3_600)
    overview = await sited.ask("GET", "/v1/overview")
    assert [fault["site"] for fault in overview["faults"] if fault["site"] == "campus"] == []
    assert {site["site"] for site in overview["sites"] if site["relay"]} == {"campus"}
    assert 'site="campus"' not in (await sited.client.get("/metrics")).text


async def test_the_log_is_paged_from_the_newest_on(sited: Asked) -> None:
    await sited.ask("PUT", ROUTE, json=WANTED)
    tunnels = [replace(TUNNEL, seconds=float(number)) for number in range(3)]
    await sited.runtime.ledger.write(lambda tx: tx.fleet.relay_log.add("campus", tunnels))
    first = await sited.client.get(f"{ROUTE}/log?limit=2")
    assert [one["tunnel"]["seconds"] for one in first.json()] == [2.0, 1.0]
    (last,) = (await sited.client.get(first.links["next"]["url"])).json()
    assert last["tunnel"]["seconds"] == 0.0


async def test_the_path_of_a_site_has_its_way_with_the_reason(sited: Asked, clock: FakeClock) -> None:
    assert (await sited.ask("GET", "/v1/sites/oslo/path"))["way"] is None
    way = SiteWay("oslo", ("campus",), "13 times the direct rate", 10**9, 75_000_000)
    await sited.runtime.ledger.write(lambda tx: tx.fleet.ways.put(way))
    told = (await sited.ask("GET", "/v1/sites/oslo/path"))["way"]
    assert (told["chain"], told["reason"], told["measured_bps"]) == (["campus"], "13 times the direct rate", None)
    assert (told["predicted_bps"], told["decided_at"]) == (10**9, clock.now().isoformat())
    assert told["circuit"] is None
    led = replace(way, chain=("campus", "core"), over=CoreCircuit(7, "core", "10.9.0.1"))
    await sited.runtime.ledger.write(lambda tx: tx.fleet.ways.put(led))
    assert (await sited.ask("GET", "/v1/sites/oslo/path"))["way"]["circuit"] == 7
    assert {one["site"]: one["circuit"] for one in (await sited.ask("GET", "/v1/tree"))["sites"]}["oslo"] == 7
