"""Routes of ports and circuits: their answers, and problem documents that name the conflicting circuits."""

from dataclasses import replace
from typing import Any

import pytest

from downburst.domain.circuits import CircuitState, CircuitUse, Direction, Measured
from downburst.domain.events import TrafficSeen
from downburst.domain.sites import Site
from unit.api.conftest import Asked

PORT = {"port": "hub-eth0", "rate_bps": 1_000_000_000, "interface": "eth0", "underlay": "192.0.2.1"}
FAR = {"port": "unl-eth1", "rate_bps": 1_000_000_000, "interface": "eth1", "underlay": "192.0.2.9", "site": "unl.edu"}
TAGS = {"first_vlan": 100, "last_vlan": 199}
WISH: dict[str, Any] = {"sites": [{"site": "unl.edu"}], "rate_out_bps": 600_000_000, "begin": "+1h", "end": "+2h"}


@pytest.fixture
async def ported(hub: Asked) -> Asked:
    with hub.runtime.ledger.transaction() as tx:
        tx.sites.add(Site("unl.edu"))
    await hub.ask("POST", "/v1/ports", 201, json=PORT | TAGS)
    await hub.ask("POST", "/v1/ports", 201, json=FAR | TAGS)
    return hub


async def test_ports_are_made_shown_changed_and_removed(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/ports", 201, json=PORT | TAGS)
    assert (made["port"], made["rate_bps"], made["first_vlan"], made["layer"]) == (
        "hub-eth0",
        1_000_000_000,
        100,
        "ethernet-frame",
    )
    assert await hub.ask("GET", "/v1/ports") == [made]
    changed = await hub.ask("PATCH", "/v1/ports/hub-eth0", json={"rate_bps": 10_000_000_000})
    assert changed == made | {"rate_bps": 10_000_000_000}
    untagged = await hub.ask("PATCH", "/v1/ports/hub-eth0", json={"first_vlan": None, "last_vlan": None})
    assert untagged["last_vlan"] is None
    fast = await hub.ask("PATCH", "/v1/ports/hub-eth0", json={"port_rate_bps": 10_000_000_000})
    assert fast["port_rate_bps"] == 10_000_000_000
    slower = await hub.problem(
        "PATCH", "/v1/ports/hub-eth0", 400, "bad-request", json={"port_rate_bps": 9_000_000_000}
    )
    assert "is one of 9 Gb/s and circuits can't reserve 10 Gb/s of it" in slower["detail"]
    unknown = await hub.ask("PATCH", "/v1/ports/hub-eth0", json={"port_rate_bps": None})
    assert unknown["port_rate_bps"] is None
    await hub.ask("DELETE", "/v1/ports/hub-eth0", 204)
    await hub.problem("GET", "/v1/ports/hub-eth0", 404, "not-found")


async def test_a_port_is_at_a_sender_or_at_a_site(hub: Asked) -> None:
    made = await hub.ask("POST", "/v1/ports", 201, json=PORT | {"sender": "one"})
    assert (made["sender"], made["site"]) == ("one", None)
    assert (await hub.ask("PATCH", "/v1/ports/hub-eth0", json={"sender": None}))["sender"] is None
    both = await hub.problem("POST", "/v1/ports", 400, "bad-request", json=FAR | {"sender": "one"})
    assert "belongs to the site unl.edu, so it can't be at the sender one" in both["detail"]
    await hub.problem("PATCH", "/v1/ports/hub-eth0", 400, "bad-request", json={"sender": "white space"})


async def test_a_circuit_between_two_sites_has_no_end_at_the_hub(ported: Asked) -> None:
    with ported.runtime.ledger.transaction() as tx:
        tx.sites.add(Site("ttu.edu"))
    await ported.ask("POST", "/v1/ports", 201, json=FAR | TAGS | {"port": "ttu-eth1", "site": "ttu.edu"})
    wish = WISH | {"hub": None, "sites": [{"site": "ttu.edu"}, {"port": "unl-eth1"}]}
    made = await ported.ask("POST", "/v1/circuits", 201, json=wish)
    assert made["sites"] == [end["site"] for end in made["ends"]] == ["ttu.edu", "unl.edu"]
    assert made["shape"] == "point-to-point"
    assert [one["circuit"] for one in await ported.ask("GET", "/v1/circuits?site=ttu.edu")] == [made["circuit"]]
    alone = await ported.problem(
        "POST", "/v1/circuits", 400, "bad-request", json=WISH | {"hub": None, "sites": [{"site": "ttu.edu"}]}
    )
    assert "or two sites'" in alone["detail"]


async def test_bad_ports_are_refused(hub: Asked) -> None:
    bad: list[dict[str, Any]] = [
        {"rate_bps": 0},
        {"first_vlan": 5},
        {"first_vlan": 5, "last_vlan": 4},
        {"last_vlan": 4095, "first_vlan": 1},
        {"port": "white space"},
        {"underlay": "eth0"},
        {"layer": "ip"},
    ]
    for wrong in bad:
        await hub.problem("POST", "/v1/ports", 400, "bad-request", json=PORT | wrong)
    await hub.problem("POST", "/v1/ports", 404, "not-found", json=PORT | {"site": "nowhere.edu"})
    await hub.ask("POST", "/v1/ports", 201, json=PORT)
    await hub.problem("POST", "/v1/ports", 409, "already-there", json=PORT)
    await hub.problem("PATCH", "/v1/ports/hub-eth0", 400, "bad-request", json={})


async def test_a_circuit_is_reserved_listed_and_shown(ported: Asked) -> None:
    made = await ported.ask("POST", "/v1/circuits", 201, json=WISH)
    assert (made["state"], made["done"], made["shape"], made["sites"]) == (
        "admitted",
        True,
        "point-to-point",
        ["unl.edu"],
    )
    assert [end["vlan"] for end in made["ends"]] == [100, 100]
    assert (made["begin"], made["end"]) == ("2026-01-01T01:00:00Z", "2026-01-01T03:00:00Z")
    assert "asked_sha256" not in made
    shown = await ported.ask("GET", f"/v1/circuits/{made['circuit']}")
    assert [event["event"] for event in shown["events"]] == ["admitted"]
    assert [one["circuit"] for one in await ported.ask("GET", "/v1/circuits?site=unl.edu")] == [made["circuit"]]
    assert await ported.ask("GET", "/v1/circuits?state=active") == []
    await ported.problem("GET", "/v1/circuits/99", 404, "not-found")


async def test_a_conflict_names_the_circuits_in_the_way(ported: Asked) -> None:
    held = await ported.ask("POST", "/v1/circuits", 201, json=WISH | {"description": "NGRID"})
    problem = await ported.problem("POST", "/v1/circuits", 409, "circuit-conflict", json=WISH)
    assert [(one["circuit"], one["description"]) for one in problem["circuits"]] == [(held["circuit"], "NGRID")]
    assert f"circuit {held['circuit']}" in problem["detail"]
    assert problem["port"] == "hub-eth0"
    touching = WISH | {"begin": "2026-01-01T03:00:00Z", "end": "2026-01-01T04:00:00Z"}
    await ported.ask("POST", "/v1/circuits", 201, json=touching)


async def test_the_same_request_is_answered_with_the_same_circuit(ported: Asked) -> None:
    wish = WISH | {"request_id": "nightly-1"}
    first = await ported.ask("POST", "/v1/circuits", 201, json=wish)
    ported.runtime.clock.advance(5)  # type: ignore[attr-defined]
    again = await ported.ask("POST", "/v1/circuits", 200, json=wish)
    assert (again["circuit"], again["done"]) == (first["circuit"], False)
    problem = await ported.problem(
        "POST", "/v1/circuits", 409, "already-there", json=wish | {"rate_out_bps": 7_000_000}
    )
    assert "nightly-1" in problem["detail"]


async def test_dry_runs_answer_as_the_thing_itself_and_keep_nothing(ported: Asked) -> None:
    would = await ported.ask("POST", "/v1/circuits?dry_run=true", 200, json=WISH)
    assert (would["done"], would["circuit"], would["state"]) == (False, 0, "requested")
    assert await ported.ask("GET", "/v1/circuits") == []
    number = (await ported.ask("POST", "/v1/circuits", 201, json=WISH))["circuit"]
    path = f"/v1/circuits/{number}"
    would = await ported.ask("PATCH", f"{path}?dry_run=true", json={"rate_out_bps": 900_000_000})
    assert (would["rate_out_bps"], would["done"]) == (900_000_000, False)
    await ported.ask("DELETE", f"{path}?dry_run=true")
    await ported.problem("POST", f"{path}/clone?dry_run=true", 409, "circuit-conflict", json={"begin": "+1h"})
    kept = await ported.ask("GET", path)
    assert (kept["rate_out_bps"], kept["state"]) == (600_000_000, "admitted")


async def test_a_circuit_is_modified_cloned_and_cancelled(ported: Asked) -> None:
    number = (await ported.ask("POST", "/v1/circuits", 201, json=WISH))["circuit"]
    path = f"/v1/circuits/{number}"
    assert (await ported.ask("PATCH", path, json={"rate_out_bps": 900_000_000, "end": None}))["end"] is None
    await ported.problem("PATCH", path, 400, "bad-request", json={"rate_out_bps": 2_000_000_000})
    await ported.problem("PATCH", path, 400, "bad-request", json={})
    gone = await ported.ask("DELETE", path, params={"by": "op"})
    assert gone["state"] == "cancelled"
    assert await ported.ask("GET", "/v1/circuits") == []
    assert len(await ported.ask("GET", "/v1/circuits?finished=true")) == 1
    clone = await ported.ask("POST", f"{path}/clone", 201)
    assert (clone["rate_out_bps"], clone["end"], clone["begin"]) == (900_000_000, None, "2026-01-01T00:00:00Z")
    await ported.problem("DELETE", path, 400, "bad-request")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"begin": "+2h", "end": "2026-01-01T01:00:00Z"}, "not after its begin"),
        ({"begin": "2025-12-01T00:00:00Z"}, "begins at 2025-12-01"),
        ({"begin": "2h"}, "+2h"),
        ({"begin": "tomorrow"}, "or how far ahead: +90s"),
        (
            {"rate_out_bps": 1_500_000_000},
            "circuits may reserve 1 Gb/s of port hub-eth0 and the circuit would need 1.5 Gb/s",
        ),
        ({"sites": []}, "sites"),
        ({"hub": {"port": "hub-eth0", "first_vlan": 300, "last_vlan": 300}}, "outside those of port hub-eth0"),
        ({"layer": "goodput"}, "ethernet-frame"),
        ({"shaped_share": 0.5}, "shaped_share"),
        ({"rate": 5}, "rate"),
    ],
)
async def test_bad_requests_get_one_clear_sentence(ported: Asked, wrong: dict[str, Any], said: str) -> None:
    problem = await ported.problem("POST", "/v1/circuits", 400, "bad-request", json=WISH | wrong)
    assert said in problem["detail"]
    assert await ported.ask("GET", "/v1/circuits") == []


async def test_unknown_ports_are_named(ported: Asked) -> None:
    problem = await ported.problem(
        "POST", "/v1/circuits", 404, "not-found", json=WISH | {"hub": {"port": "hub-eth9"}}
    )
    assert "hub-eth0, unl-eth1" in problem["detail"]


async def test_what_was_measured_and_what_is_used_stand_beside_what_was_reserved(ported: Asked) -> None:
    number = (await ported.ask("POST", "/v1/circuits", 201, json=WISH))["circuit"]
    now = ported.runtime.clock.now()
    row = Measured(number, "unl.edu", Direction.OUT, now, 250_000_000, 600_000_000, cause="policer", sentence="why")
    with ported.runtime.ledger.transaction() as tx:
        tx.circuits.measured([row])
    use = CircuitUse(number, "unl.edu", 12_500_000, 1_000)
    ported.runtime.live.apply(TrafficSeen(0, 1_000_000, (), (), (), 0, (use,)))
    shown = await ported.ask("GET", f"/v1/circuits/{number}")
    assert (shown["measured_out_bps"], shown["used_out_bps"]) == (250_000_000, 100_000_000)
    assert (shown["measurements"][0]["cause"], shown["measurements"][0]["enough"]) == ("policer", False)


async def test_what_all_sites_use_together_is_shown_as_even_shares(ported: Asked) -> None:
    number = (await ported.ask("POST", "/v1/circuits", 201, json=WISH))["circuit"]
    whole = CircuitUse(number, None, 12_500_000, 1_000)
    ported.runtime.live.apply(TrafficSeen(0, 1_000_000, (), (), (), 0, (whole,)))
    shown = await ported.ask("GET", f"/v1/circuits/{number}")
    assert shown["used_out_bps"] == 100_000_000 / len(shown["sites"])


async def test_metrics_and_overview_show_what_has_begun_and_what_troubles_it(ported: Asked) -> None:
    waiting = await ported.ask("POST", "/v1/circuits", 201, json=WISH)
    begun = await ported.ask("POST", "/v1/circuits", 201, json=WISH | {"begin": "now", "end": "+1h"})
    number, why = begun["circuit"], "251 Mb/s of 600 Mb/s get to unl.edu"
    row = Measured(number, "unl.edu", Direction.OUT, ported.runtime.clock.now(), 251_000_000, 600_000_000)
    with ported.runtime.ledger.transaction() as tx:
        tx.circuits.save(replace(tx.circuits.one(number), state=CircuitState.DEGRADED, reason=why))
        tx.circuits.measured([replace(row, cause="policer", remedy="ask the provider")])
    use = CircuitUse(number, "unl.edu", 12_500_000, 1_000)
    ported.runtime.live.apply(TrafficSeen(0, 1_000_000, (), (), (), 0, (use,)))
    told = (await ported.client.get("/metrics")).text
    labels = f'circuit="{number}",direction="out"'
    assert f"downburst_circuit_reserved_bytes_per_second{{{labels}}} 75000000.0" in told
    labels = f'circuit="{number}",site="unl.edu",direction="out"'
    assert f"downburst_circuit_measured_bytes_per_second{{{labels}}} 31375000.0" in told
    assert f"downburst_circuit_frame_bytes_total{{{labels}}} 12500000" in told
    assert f'downburst_circuit_state{{circuit="{number}",state="degraded"}} 1' in told
    overview = await ported.ask("GET", "/v1/overview")
    assert [one["circuit"] for one in overview["circuits"]] == [number, waiting["circuit"]]
    fault = next(one for one in overview["faults"] if "circuit" in one["sentence"])
    assert (fault["sentence"], fault["next"]) == (f"circuit {number} is degraded: {why}", "ask the provider")


async def test_only_what_stands_is_measured(ported: Asked) -> None:
    number = (await ported.ask("POST", "/v1/circuits", 201, json=WISH))["circuit"]
    await ported.problem("POST", f"/v1/circuits/{number}/measure", 400, "bad-request")
    with ported.runtime.ledger.transaction() as tx:
        assert tx.circuits.one(number).state is CircuitState.ADMITTED


async def test_leaves_are_added_to_and_removed_from_a_multipoint_circuit(ported: Asked) -> None:
    for number, site in enumerate(("ttu.edu", "wisc.edu"), start=10):
        with ported.runtime.ledger.transaction() as tx:
            tx.sites.add(Site(site))
        port = FAR | TAGS | {"port": f"{site}-eth1", "site": site, "underlay": f"192.0.2.{number}"}
        await ported.ask("POST", "/v1/ports", 201, json=port)
    wish = WISH | {"sites": [{"site": "unl.edu"}, {"site": "ttu.edu"}], "rate_out_bps": 250_000_000}
    other = (await ported.ask("POST", "/v1/circuits", 201, json=WISH | {"rate_out_bps": 300_000_000}))["circuit"]
    number = (await ported.ask("POST", "/v1/circuits", 201, json=wish))["circuit"]
    path = f"/v1/circuits/{number}/leaves"
    full = await ported.problem("POST", path, 409, "circuit-conflict", json={"site": "wisc.edu"})
    assert (full["port"], [one["circuit"] for one in full["circuits"]]) == ("hub-eth0", [other])
    await ported.ask("DELETE", f"/v1/circuits/{other}")
    tried = await ported.ask("POST", f"{path}?dry_run=true", 200, json={"site": "wisc.edu"})
    assert (tried["done"], tried["sites"]) == (False, ["unl.edu", "ttu.edu", "wisc.edu"])
    made = await ported.ask("POST", path, 201, json={"port": "wisc.edu-eth1", "by": "eve"})
    assert (made["done"], made["sites"], made["ends"][3]["vlan"]) == (True, tried["sites"], 101)
    await ported.problem("POST", path, 409, "already-there", json={"site": "wisc.edu"})
    nameless = await ported.problem("POST", path, 400, "bad-request", json={})
    assert "neither a site nor a port" in nameless["detail"]
    left = await ported.ask("DELETE", f"{path}/unl.edu?by=eve")
    assert left["sites"] == ["ttu.edu", "wisc.edu"]
    await ported.problem("DELETE", f"{path}/unl.edu", 404, "not-found")
    few = await ported.problem("DELETE", f"{path}/ttu.edu", 400, "bad-request")
    assert "needs two sites at least" in few["detail"]
    events = (await ported.ask("GET", f"/v1/circuits/{number}"))["events"]
    assert [event["event"] for event in events] == ["admitted", "leaf-added", "leaf-removed"]


async def test_tests_with_load_are_booked_listed_and_ended(ported: Asked) -> None:
    wish = {"far": {"site": "unl.edu"}, "rate_out_bps": 600_000_000, "seconds": 30, "by": "eve"}
    first = await ported.ask("POST", "/v1/test-bookings", 201, json=wish)
    booking = first["booking"]
    assert (first["granted"], first["begin"], booking["kind"], booking["by"]) == (True, None, "test", "eve")
    assert (booking["ports"], booking["sites"]) == (["hub-eth0", "unl-eth1"], ["unl.edu"])
    assert (booking["begin"], booking["end"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:30Z")
    assert await ported.ask("GET", "/v1/test-bookings") == [booking]
    later = await ported.ask("POST", "/v1/test-bookings", 200, json=wish)
    assert (later["granted"], later["booking"], later["begin"]) == (False, None, "2026-01-01T00:00:30Z")
    path = f"/v1/test-bookings/{booking['number']}"
    await ported.ask("DELETE", path, 204)
    await ported.problem("DELETE", path, 404, "not-found")
    unusable: list[dict[str, Any]] = [{"far": {}}, {"seconds": 0}, {"rate_out_bps": -1}, {"rate_out_bps": 0}]
    for wrong in (*unusable, {"seconds": 4_000}):
        await ported.problem("POST", "/v1/test-bookings", 400, "bad-request", json=wish | wrong)
    await ported.problem("POST", "/v1/test-bookings", 404, "not-found", json=wish | {"test": "other"})
