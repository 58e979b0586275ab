"""Routes of the topology and of the desk's questions; refusals are problem documents with one sentence."""

from typing import Any

import pytest

from downburst.domain.sites import Site
from kit.played_api import TOPOLOGY
from unit.api.conftest import Asked

HUB = {"interface": "eth0", "underlay": "192.0.2.1", "first_vlan": 100, "last_vlan": 199}
FAR = {"interface": "eth1", "underlay": "192.0.2.9", "first_vlan": 100, "last_vlan": 199}
PORTS: tuple[dict[str, Any], ...] = (
    {"port": "hub-eth0", "rate_bps": 1_000_000_000} | HUB,
    {"port": "unl-eth1", "rate_bps": 1_000_000_000, "site": "unl.edu"} | FAR,
)
WINDOW: dict[str, Any] = {"to": "unl.edu", "rate_out_bps": 600_000_000, "minutes": 45}


@pytest.fixture
async def linked(hub: Asked) -> Asked:
    with hub.runtime.ledger.transaction() as tx:
        tx.sites.add(Site("unl.edu"))
    for port in PORTS:
        await hub.ask("POST", "/v1/ports", 201, json=port)
    await hub.ask("PUT", "/v1/topology", json=TOPOLOGY)
    return hub


async def test_a_topology_is_put_as_a_whole_and_shown(linked: Asked) -> None:
    shown = await linked.ask("GET", "/v1/topology")
    assert [link["name"] for link in shown["links"]] == ["unl", "up"]
    assert shown["links"][1]["tags"] == {"kind": "vlan", "first": 100, "last": 149}
    assert shown["maintenance"][0]["begin"] == "2027-03-01T06:00:00Z"
    again = await linked.ask("PUT", "/v1/topology", json=shown)
    assert (again["changes"], again["done"]) == ([], True)
    would = await linked.ask("PUT", "/v1/topology?dry_run=true", json={})
    assert (len(would["changes"]), would["done"]) == (6, False)
    assert await linked.ask("GET", "/v1/topology") == shown


async def test_a_port_of_the_topology_can_not_be_removed(linked: Asked) -> None:
    problem = await linked.problem("DELETE", "/v1/ports/hub-eth0", 409, "already-there")
    assert "port hub-eth0 is needed by link up of the topology" in problem["detail"]
    await linked.ask("PUT", "/v1/topology", json={})
    await linked.ask("DELETE", "/v1/ports/hub-eth0", 204)


@pytest.mark.parametrize(
    "wrong",
    [
        {"links": [{**TOPOLOGY["links"][0], "az_bps": 0}]},
        {"links": [{**TOPOLOGY["links"][0], "a": "two words"}]},
        {"links": [{**TOPOLOGY["links"][0], "tags": {"kind": "vlan", "first": 9, "last": 5}}]},
        {"links": [{**TOPOLOGY["links"][0], "tags": {"kind": "vlan", "first": 1, "last": 5000}}]},
        {"links": TOPOLOGY["links"]},
        {"switches": TOPOLOGY["switches"]},
        {"hosts": [{"name": "h", "ports": ["chic-1"], "nic_bps": 1}]},
        {"maintenance": [{**TOPOLOGY["maintenance"][0], "end": "2027-03-01T06:00:00Z"}]},
        {"maintenance": [{**TOPOLOGY["maintenance"][0], "begin": "2027-03-01T06:00:00"}]},
        {"moons": []},
        {"domains": [{"name": "a"}, {"name": "a"}]},
    ],
)
async def test_topologies_that_can_not_be_are_refused_and_change_nothing(
    linked: Asked, wrong: dict[str, Any]
) -> None:
    before = await linked.ask("GET", "/v1/topology")
    await linked.problem("PUT", "/v1/topology", 400, "bad-request", json=wrong)
    assert await linked.ask("GET", "/v1/topology") == before


async def test_a_circuit_shows_its_path_and_a_conflict_its_nearest_window(linked: Asked) -> None:
    wish = {"sites": [{"site": "unl.edu"}], "rate_out_bps": 600_000_000, "begin": "+1h", "end": "+2h"}
    made = await linked.ask("POST", "/v1/circuits", 201, json=wish)
    assert made["path"] == [
        {"link": "up", "forward": True, "tag": 100},
        {"link": "unl", "forward": True, "tag": None},
    ]
    problem = await linked.problem("POST", "/v1/circuits", 409, "circuit-conflict", json=wish | {"begin": "+61m"})
    assert problem["nearest"]["begin"] == made["end"].replace("Z", "+00:00")
    assert f"circuit {made['circuit']} holds 600 Mb/s out" in problem["detail"]


async def test_windows_and_rates_are_answered(linked: Asked) -> None:
    wish = {"sites": [{"site": "unl.edu"}], "rate_out_bps": 600_000_000, "begin": "now", "end": "+2h"}
    made = await linked.ask("POST", "/v1/circuits", 201, json=wish)
    answer = await linked.ask("POST", "/v1/topology/window", json=WINDOW)
    assert answer["found"]["begin"] == made["end"]
    assert [hop["link"] for hop in answer["found"]["path"]] == ["up", "unl"]
    soon = await linked.ask("POST", "/v1/topology/window", json=WINDOW | {"last": "+5m"})
    assert soon["found"] is None
    free = await linked.ask("POST", "/v1/topology/rate", json={"to": "unl-eth1", "end": "+1h"})
    assert (free["rate_out_bps"], free["rate_in_bps"]) == (400_000_000, 500_000_000)
    assert free["sentence"].startswith("400 Mb/s out and 500 Mb/s in are free from ")


async def test_bad_questions_are_refused(linked: Asked) -> None:
    for wrong in ({"minutes": 0}, {"first": "yesterday"}, {"first": "+2h", "last": "+1h"}, {"include": ["moon"]}):
        await linked.problem("POST", "/v1/topology/window", 400, "bad-request", json=WINDOW | wrong)
    await linked.problem("POST", "/v1/topology/window", 404, "not-found", json=WINDOW | {"to": "nowhere.edu"})
    await linked.problem("POST", "/v1/topology/rate", 400, "bad-request", json={"to": "unl.edu", "end": "2020-01-01"})
