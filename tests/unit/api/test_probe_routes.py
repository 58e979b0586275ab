"""Probes over the api: requests with what is left out, lists, tables, ceilings and schedules."""

import csv
from dataclasses import replace

import pytest

from downburst.domain.access import Role
from downburst.domain.probes import ProbeState
from downburst.domain.probes.results import DelaySpread, ProbeResult, ProbeSecond
from downburst.domain.probes.signs import ProbesChanged
from downburst.domain.probes.trials import FlowResult, RoundTrip, TrialResult
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from kit.probes import step
from unit.api.conftest import Asked

KNEE = {"site": "unl.edu", "kind": "knee"}
CBR = {"site": "isu.edu", "kind": "cbr", "rate_bps": 50_000_000}


@pytest.fixture(autouse=True)
def _sites(ledger: Ledger) -> None:
    with ledger.transaction() as tx:
        tx.sites.add(Site("unl.edu", access_rate_bps=1e9))
        tx.sites.add(Site("isu.edu"))


async def test_a_sweep_rises_to_the_sites_access_rate(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/probes", 201, json=KNEE)
    assert (made["state"], made["direction"], made["requested_by"]) == ("waiting", "out", "local")
    assert len(made["steps"]) == 10
    assert made["steps"][0] == {"rate_bps": 100_000_000, "duration_ms": 1_000}
    assert made["steps"][-1]["rate_bps"] == 1_000_000_000
    assert ProbesChanged() in [await hub.events.next()]
    assert await hub.ask("GET", f"/v1/probes/{made['id']}") == made
    lower = await hub.ask("POST", "/v1/probes", 201, json=KNEE | {"rate_bps": 10**8, "steps": 5, "seconds": 0.5})
    assert [one["rate_bps"] for one in lower["steps"]][-1] == 10**8
    assert {one["duration_ms"] for one in lower["steps"]} == {500}


@pytest.mark.parametrize(
    ("wanted", "status", "code", "part"),
    [
        (KNEE | {"site": "isu.edu"}, 400, "bad-request", "--highest 1G"),
        ({"site": "isu.edu", "kind": "soak"}, 400, "bad-request", "--rate 100M"),
        (CBR | {"rate_bps": 5}, 400, "bad-request", "a probe sends 64 kb/s"),
        (CBR | {"seconds": 4_000}, 400, "bad-request", "3600 s"),
        ({"site": "isu.edu", "kind": "stacks"}, 400, "bad-request", "--rate 1G"),
        (CBR | {"stacks": ["bbr"]}, 400, "bad-request", "a cbr compares no stacks"),
        (KNEE | {"transport": "tcp"}, 400, "bad-request", "a sweep has no TCP"),
        (CBR | {"congestion": "bbr"}, 400, "bad-request", "--transport tcp"),
        (KNEE | {"kind": "stacks", "stacks": ["Bbr"]}, 400, "bad-request", "'Bbr' can't be"),
        (CBR | {"site": "none"}, 404, "not-found", "none"),
        (CBR | {"packet_bytes": 9_000}, 400, "bad-request", "packet_bytes"),
    ],
)
async def test_an_impossible_probe_is_refused(
    hub: Asked, wanted: dict[str, object], status: int, code: str, part: str
) -> None:
    assert part in (await hub.problem("POST", "/v1/probes", status, code, json=wanted))["detail"]
    assert await hub.ask("GET", "/v1/probes") == []


async def test_stacks_are_compared_up_to_the_sites_access_rate(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/probes", 201, json={"site": "unl.edu", "kind": "stacks"})
    assert (made["transport"], made["congestion"]) == ("tcp", None)
    assert made["steps"] == [{"rate_bps": 1_000_000_000, "duration_ms": 180_000}]
    assert len(made["trials"]) == 18
    assert made["trials"][4] == {"flows": ["cubic", "bbr"], "reverse": [], "duration_ms": 10_000}
    wanted = {"site": "isu.edu", "kind": "stacks", "stacks": ["bbr"], "seconds": 2, "reverse_traffic": False}
    small = await hub.ask("POST", "/v1/probes", 201, json=wanted | {"rate_bps": 10**8})
    assert [one["flows"] for one in small["trials"]] == [["bbr"], ["bbr", "bbr"]]
    assert small["steps"] == [{"rate_bps": 10**8, "duration_ms": 4_000}]


async def test_one_rate_may_be_sent_by_tcp(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/probes", 201, json=CBR | {"transport": "tcp", "congestion": "cubic"})
    assert (made["transport"], made["congestion"], made["trials"]) == ("tcp", "cubic", [])
    udp = await hub.ask("POST", "/v1/probes", 201, json=CBR)
    assert (udp["transport"], udp["congestion"]) == ("udp", None)


async def test_the_flows_of_trials_are_rows_of_the_table(hub: Asked, ledger: Ledger) -> None:
    made = await hub.ask("POST", "/v1/probes", 201, json={"site": "unl.edu", "kind": "stacks"})
    flow = FlowResult("cubic", False, 6e7, 3, RoundTrip(40_000, 50_000))
    trial = TrialResult(10_000, None, 0.8, False, (flow, replace(flow, congestion="bbr", goodput_bps=2e7)))
    with ledger.transaction() as tx:
        probes = tx.measured.probing.probes
        result = ProbeResult((), trials=(trial, TrialResult(10_000, "bbr is not available", None, False, ())))
        probes.save(replace(probes.one(made["id"]), state=ProbeState.DONE, result=result))
    shown = (await hub.ask("GET", f"/v1/probes/{made['id']}"))["result"]["trials"]
    assert shown[0]["shares"] == [0.75, 0.25]
    assert shown[0]["flows"][1]["congestion"] == "bbr"
    rows = list(csv.DictReader((await hub.client.get("/v1/probes?format=csv")).text.splitlines()))
    assert [(row["trial"], row["congestion"], row["share"], row["trial_reason"]) for row in rows] == [
        ("1", "cubic", "0.75", ""),
        ("1", "bbr", "0.25", ""),
        ("2", "", "", "bbr is not available"),
    ]
    assert (rows[0]["round_trip_min_us"], rows[0]["retransmits"], rows[0]["kind"]) == ("40000", "3", "stacks")


async def test_probes_are_listed_by_filters_and_page_by_page(hub: Asked, clock: FakeClock) -> None:
    first = await hub.ask("POST", "/v1/probes", 201, json=KNEE)
    second = await hub.ask("POST", "/v1/probes", 201, json=CBR)
    assert await hub.ask("GET", "/v1/probes") == [second, first]
    assert await hub.ask("GET", "/v1/probes?site=unl.edu") == [first]
    assert await hub.ask("GET", "/v1/probes?kind=cbr&state=waiting") == [second]
    clock.advance(3_600)
    assert await hub.ask("GET", "/v1/probes?since=30m") == []
    page = await hub.client.get("/v1/probes?limit=1")
    assert page.json() == [second]
    following = page.links["next"]["url"]
    assert await hub.ask("GET", following) == [first]


async def test_results_and_seconds_come_as_tables_too(hub: Asked, ledger: Ledger, clock: FakeClock) -> None:
    made = await hub.ask("POST", "/v1/probes", 201, json=CBR)
    with ledger.transaction() as tx:
        probes = tx.measured.probing.probes
        result = ProbeResult((step(50_000_000, lost=10),), 120, variation=0.01)
        probes.save(replace(probes.one(made["id"]), state=ProbeState.DONE, result=result, ended_at=clock.now()))
        probes.add_seconds(made["id"], [ProbeSecond(0, 10, 9, 1, 0, 0, 12_000, DelaySpread(1, 2, 3, 4), 1.5, 900)])
    shown = await hub.ask("GET", f"/v1/probes/{made['id']}")
    assert shown["result"]["steps"][0]["loss"] == 0.01
    rows = (await hub.client.get("/v1/probes?format=csv")).text.splitlines()
    assert rows[0].startswith("id,site,kind,direction,state,reason,")
    assert rows[1].startswith(f"{made['id']},isu.edu,cbr,out,done,,")
    assert ",50000000,50000000.0,49500000.0,1000,990,10,0.01," in rows[1]
    (second,) = await hub.ask("GET", f"/v1/probes/{made['id']}/seconds")
    assert second["delay_us"] == {"min": 1, "median": 2, "p99": 3, "max": 4}
    assert await hub.ask("GET", f"/v1/probes/{made['id']}/seconds?first=1") == []
    table = (await hub.client.get(f"/v1/probes/{made['id']}/seconds?format=csv")).text.splitlines()
    assert table[1] == "0,10,9,1,0,0,12000,1,2,3,4,1.5,900,0"


async def test_a_probe_is_asked_to_stop_once(hub: Asked, ledger: Ledger) -> None:
    made = await hub.ask("POST", "/v1/probes", 201, json=CBR)
    await hub.ask("DELETE", f"/v1/probes/{made['id']}")
    with ledger.transaction() as tx:
        assert tx.measured.probing.probes.one(made["id"]).stop_by == "local"
    await hub.problem("DELETE", "/v1/probes/77", 404, "not-found")


async def test_a_schedule_is_kept_until_it_is_removed(hub: Asked, clock: FakeClock) -> None:
    wanted = CBR | {"every_h": 6, "first_hour": 22, "end_hour": 4}
    made = await hub.ask("POST", "/v1/probe-schedules", 201, json=wanted)
    assert (made["every_h"], made["first_hour"], made["end_hour"]) == (6, 22, 4)
    assert made["next_at"] == clock.now().isoformat().replace("+00:00", "Z")
    assert await hub.ask("GET", "/v1/probe-schedules?site=isu.edu") == [made]
    assert await hub.ask("GET", "/v1/probe-schedules?site=unl.edu") == []
    await hub.problem("POST", "/v1/probe-schedules", 400, "bad-request", json=wanted | {"end_hour": 22})
    await hub.ask("DELETE", f"/v1/probe-schedules/{made['id']}", 204)
    await hub.problem("DELETE", f"/v1/probe-schedules/{made['id']}", 404, "not-found")


async def test_the_operator_and_the_site_set_ceilings_of_their_own(hub: Asked, ledger: Ledger) -> None:
    path = "/v1/sites/unl.edu/probe-ceiling"
    before = await hub.ask("GET", path)
    assert (before["ceilings"], before["default_bytes_per_day"], before["used_bytes"]) == ([], 20_000_000_000, 0)
    await hub.ask("PUT", path, json={"rate_bps": 500_000_000})
    made = await hub.ask(
        "POST", "/v1/access-tokens", 201, json={"name": "unl", "role": Role.SITE.value, "site": "unl.edu"}
    )
    own = {"Authorization": f"Bearer {made['token']}"}
    found = await hub.ask("PUT", path, json={"bytes_per_day": 10**9}, headers=own)
    sides = [(one["side"], one["rate_bps"], one["bytes_per_day"], one["set_by"]) for one in found["ceilings"]]
    assert sides == [("operator", 500_000_000, None, "local"), ("site", None, 10**9, "token 1 (unl)")]
    await hub.problem("PUT", "/v1/sites/isu.edu/probe-ceiling", 403, "refused", json={}, headers=own)
    listed = await hub.ask("PUT", path, json={})
    assert [one["side"] for one in listed["ceilings"]] == ["site"], "nothing given: no ceiling"


async def test_a_sites_administrator_sees_the_sites_own_probes(hub: Asked) -> None:
    mine = await hub.ask("POST", "/v1/probes", 201, json=KNEE)
    other = await hub.ask("POST", "/v1/probes", 201, json=CBR)
    made = await hub.ask(
        "POST", "/v1/access-tokens", 201, json={"name": "unl", "role": Role.SITE.value, "site": "unl.edu"}
    )
    own = {"Authorization": f"Bearer {made['token']}"}
    assert await hub.ask("GET", "/v1/probes", headers=own) == [mine]
    assert await hub.ask("GET", f"/v1/probes/{mine['id']}", headers=own) == mine
    await hub.problem("GET", f"/v1/probes/{other['id']}", 404, "not-found", headers=own)
    await hub.problem("GET", f"/v1/probes/{other['id']}/seconds", 404, "not-found", headers=own)
    await hub.problem("POST", "/v1/probes", 403, "refused", json=KNEE, headers=own)


async def test_prometheus_gets_running_probes_and_the_last_knees(
    hub: Asked, ledger: Ledger, clock: FakeClock
) -> None:
    runs = await hub.ask("POST", "/v1/probes", 201, json=CBR)
    swept = await hub.ask("POST", "/v1/probes", 201, json=KNEE)
    with ledger.transaction() as tx:
        probes = tx.measured.probing.probes
        probes.save(replace(probes.one(runs["id"]), state=ProbeState.RUNNING))
        result = ProbeResult((step(10**9),), knee_bps=8e8)
        probes.save(replace(probes.one(swept["id"]), state=ProbeState.DONE, result=result, ended_at=clock.now()))
    text = (await hub.client.get("/metrics")).text
    assert "downburst_path_probes_running 1" in text
    assert 'downburst_path_knee_bytes_per_second{site="unl.edu",direction="out"} 100000000' in text
    clock.advance(15 * 86_400)
    assert "downburst_path_knee_bytes_per_second{" not in (await hub.client.get("/metrics")).text
