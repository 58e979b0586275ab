"""LDM over the API: sources, the right to push, and sites that keep their LDM."""

from typing import Any

import pytest

from downburst.domain.events import LdmPeerChanged, LdmSourceChanged
from downburst.foundation.clock import FakeClock
from unit.api.conftest import Asked

SOURCE: dict[str, Any] = {"source": "idd", "feeds": "NGRID", "upstreams": ["idd.example.edu", "[2001:db8::7]:3880"]}


async def test_a_source_reaches_the_node_and_says_what_no_feed_takes(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/ldm/sources", 201, json=SOURCE)
    assert (made["pattern"], made["max_age_s"]) == (".*", 3600)
    assert hub.node.fake.ldm["sources"][0]["upstreams"] == SOURCE["upstreams"]
    (listed,) = await hub.ask("GET", "/v1/ldm/sources")
    assert [one["connected"] for one in listed["state"]] == [False, False]
    assert not listed["has_feeds"]
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "GRIDS", "ldm_feed_type": "NGRID|HDS"})
    assert (await hub.ask("GET", "/v1/ldm/sources"))[0]["has_feeds"]
    await hub.problem("POST", "/v1/ldm/sources", 409, "already-there", json=SOURCE)
    await hub.ask("PUT", "/v1/ldm/sources/idd", 200, json=SOURCE | {"max_age_s": 60})
    assert hub.node.fake.ldm["sources"][0]["max_age_seconds"] == 60
    await hub.ask("DELETE", "/v1/ldm/sources/idd", 204)
    assert hub.node.fake.ldm["sources"] == []


async def test_a_source_that_the_node_refuses_is_not_kept(hub: Asked) -> None:
    await hub.problem("POST", "/v1/ldm/sources", 400, "bad-request", json=SOURCE | {"upstreams": ["unusable"]})
    assert await hub.ask("GET", "/v1/ldm/sources") == []


@pytest.mark.parametrize(
    "change",
    [{"feeds": "NOPE"}, {"upstreams": []}, {"upstreams": ["a b"]}, {"upstreams": ["a:b"]}, {"source": "No Name"}],
)
async def test_a_bad_source_is_refused(hub: Asked, change: dict[str, Any]) -> None:
    await hub.problem("POST", "/v1/ldm/sources", 400, "bad-request", json=SOURCE | change)
    assert await hub.ask("GET", "/v1/ldm/sources") == []


async def test_who_may_push_is_told_to_the_node(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/ldm/accepts", 201, json={"feeds": "EXP", "host": r"\.edu$"})
    assert hub.node.fake.ldm["accept"] == [{"feeds": "EXP", "pattern": ".*", "host": r"\.edu$"}]
    assert await hub.ask("GET", "/v1/ldm/accepts") == [made]
    await hub.ask("DELETE", f"/v1/ldm/accepts/{made['id']}", 204)
    await hub.problem("DELETE", f"/v1/ldm/accepts/{made['id']}", 404, "not-found")
    assert await hub.ask("GET", "/v1/ldm/peers") == {"addresses": [], "peers": []}


async def test_a_feed_of_ldms_has_their_rule_unless_another_is_named(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/feeds", 201, json={"feed": "A", "ldm_feed_type": "NGRID"})
    named = await hub.ask(
        "POST", "/v1/feeds", 201, json={"feed": "B", "ldm_feed_type": "HDS", "duplicate_rule": "id"}
    )
    assert (made["duplicate_rule"], named["duplicate_rule"]) == ("signature", "id")
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "C"})
    changed = await hub.ask("PATCH", "/v1/feeds/C", 200, json={"ldm_feed_type": "IDS"})
    assert changed["duplicate_rule"] == "signature"
    changed = await hub.ask("PATCH", "/v1/feeds/C", 200, json={"ldm_feed_type": None})
    assert (changed["ldm_feed_type"], changed["duplicate_rule"]) == (None, "signature")
    await hub.problem("POST", "/v1/feeds", 400, "bad-request", json={"feed": "D", "ldm_feed_type": "NOPE"})


async def test_an_ldm_site_that_is_away_is_said_until_it_asks(hub: Asked, clock: FakeClock) -> None:
    await hub.ask("POST", "/v1/feeds", 201, json={"feed": "A", "ldm_feed_type": "NGRID"})
    await hub.ask("POST", "/v1/sites", 201, json={"site": "a.edu", "ldm_host": r"^ldm\.a\.edu$"})
    await hub.ask("POST", "/v1/sites/a.edu/subscriptions", 201, json={"feed": "A"})
    assert hub.node.fake.sites["a.edu"]["ldm_host"] == r"^ldm\.a\.edu$"
    (fault,) = [one for one in await _faults(hub) if one["site"] == "a.edu"]
    assert "no LDM of site a.edu is connected" in fault["sentence"]
    hub.runtime.live.apply(LdmPeerChanged("ldm.a.edu", "connected", clock.now(), "feedme", "a.edu"))
    assert [one for one in await _faults(hub) if one["site"] == "a.edu"] == []
    (seen,) = (await hub.ask("GET", "/v1/overview"))["sites"]
    assert (seen["connected"], seen["since"]) == (True, "2026-01-01T00:00:00Z")


async def test_an_upstream_that_is_away_is_said_with_what_goes_on(hub: Asked, clock: FakeClock) -> None:
    await hub.ask("POST", "/v1/ldm/sources", 201, json=SOURCE)
    hub.runtime.live.apply(LdmSourceChanged("idd", "idd.example.edu", "connected", clock.now(), "primary"))
    (fault,) = [one for one in await _faults(hub) if "idd" in one["sentence"]]
    assert "[2001:db8::7]:3880 sends nothing to source idd; 1 other upstreams work" in fault["sentence"]
    (seen,) = (await hub.ask("GET", "/v1/overview"))["ldm_sources"]
    assert [one["connected"] for one in seen["upstreams"]] == [True, False]


async def test_reports_of_other_hosts_are_shown_and_rubbish_is_not(hub: Asked) -> None:
    line = (
        "20160929125247 20160929125248              ingest1.local.irads NEXRAD2 rpga1_v_140.172.24.16          187"
        "     22151151 0.596241       1.16   11@0022                6.8.1\n"
    )
    for told in (line, "rubbish", line.replace("22151151", "many"), line):
        hub.runtime.live.reported(told)
    (seen,) = await hub.ask("GET", "/v1/ldm/reports")
    assert (seen["host"], seen["feed"], seen["path"]) == ("ingest1.local.irads", "NEXRAD2", "rpga1_v_140.172.24.16")
    assert (seen["products"], seen["mean_latency_s"]) == (187, 1.16)


async def _faults(hub: Asked) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await hub.ask("GET", "/v1/overview"))["faults"]
    return found
