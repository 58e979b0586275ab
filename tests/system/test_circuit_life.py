"""Circuits from the request to the end of the window, by a whole hub: measurement, fallback, change, end."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kit.busy import Stalls
from kit.capabilities import needs
from kit.circuit_bed import network_of
from kit.circuit_hub import SITE, CircuitHub
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.patience import wait_for
from kit.provider import Line

pytestmark = [pytest.mark.system, pytest.mark.root]

M = 1_000_000
NEAR = "near.example"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with ExitStack() as stack:
        yield stack


@pytest.mark.alone
def test_a_policed_circuit_is_found_degraded_and_its_feed_falls_back(stack: ExitStack, tmp_path: Path) -> None:
    lab = stack.enter_context(Lab(["hub", "far"]))
    hub = CircuitHub(lab, tmp_path, stack, port_bps=100 * M)
    number = hub.reserve(20 * M)["circuit"]
    active = hub.wait_state(number, "active")
    assert active["measured_out_bps"] > 0.8 * 20 * M
    hub.hub.ask("PUT", "/v1/feeds/CONDUIT/pin", json={"transport": "static-circuit"})
    hub.wait_transport("static-circuit")
    hub.put("by-the-circuit", random.Random(1).randbytes(1_000_000))
    hub.site.wait_received(1)
    hub.wait_shown(number, lambda shown: shown["used_out_bps"] > 0, "use of the circuit")

    provider = Line(lab, "far", rate_bps=1_000 * M, vni=0)
    provider.police(10 * M)
    hub.hub.ask("POST", f"/v1/circuits/{number}/measure")
    degraded = hub.wait_state(number, "degraded")
    print(degraded["reason"], degraded["measurements"])
    row = next(row for row in degraded["measurements"] if row["direction"] == "out")
    assert (row["cause"], row["enough"], row["site"]) == ("policer", False, SITE)
    assert row["rate_bps"] == pytest.approx(10 * M, rel=0.15)
    assert "policer" in degraded["reason"]
    event = next(event for event in reversed(degraded["events"]) if event["state"] == "degraded")
    assert (event["step"], event["hop"]) == ("measuring", SITE)
    assert "ask the provider to set its policer" in event["remedy"]
    hub.wait_transport("unicast")
    hub.put("by-the-routed-path", random.Random(2).randbytes(100_000))
    hub.site.wait_received(2)

    provider.stop_policing()
    hub.hub.ask("POST", f"/v1/circuits/{number}/measure")
    hub.wait_state(number, "active")
    hub.wait_transport("static-circuit")


@pytest.mark.alone
def test_a_refused_change_leaves_the_traffic_alone_and_the_end_leaves_nothing(
    stack: ExitStack, tmp_path: Path
) -> None:
    lab = stack.enter_context(Lab(["hub", "far"]))
    hub = CircuitHub(lab, tmp_path, stack, port_bps=100 * M)
    hub.hub.ask("PATCH", "/v1/ports/hub-eth0", json={"port_rate_bps": 200 * M})
    first, other = hub.reserve(50 * M)["circuit"], hub.reserve(40 * M)["circuit"]
    hub.wait_state(first, "active")
    hub.wait_state(other, "active")
    hub.hub.ask("PUT", "/v1/feeds/CONDUIT/pin", json={"transport": "static-circuit"})
    hub.wait_transport("static-circuit")
    hub.put("three-seconds-of-it", random.Random(1).randbytes(15 * M))
    hub.wait_shown(first, lambda shown: shown["used_out_bps"] > 30 * M, "use of the circuit")
    stood, connections = network_of(lab, "hub"), hub.connections()
    assert "root rate 200Mbit ceil 200Mbit" in stood, "the port's own rate bounds all that leaves by it"
    assert connections
    refused = hub.refused("PATCH", f"/v1/circuits/{first}", json={"rate_out_bps": 90 * M})
    assert (refused.status_code, [each["circuit"] for each in refused.json()["circuits"]]) == (409, [other])
    assert f"because of circuit {other}" in refused.json()["detail"]
    kept = hub.shown(first)
    assert (kept["state"], kept["rate_out_bps"]) == ("active", 50 * M)
    assert (network_of(lab, "hub"), hub.connections()) == (stood, connections)
    hub.site.wait_received(1)

    assert hub.hub.ask("DELETE", f"/v1/circuits/{other}")["circuit"] == other
    hub.wait_state(other, "cancelled")
    with Stalls() as stalls:
        ended = hub.hub.ask("PATCH", f"/v1/circuits/{first}", json={"end": "+2s"})
        over = hub.wait_state(first, "ended")
    late_s = _moment(over["events"], "ending") - datetime.fromisoformat(ended["end"]).timestamp()
    print(f"the end fired {late_s:.2f} s after its moment")
    assert late_s < 1 + stalls.lost_s()
    hub.wait_untouched()


def test_a_group_rides_on_a_multipoint_circuit_where_the_network_carries_none(
    stack: ExitStack, tmp_path: Path
) -> None:
    lab = stack.enter_context(Lab(["hub", "far", "near"]))
    hub = CircuitHub(lab, tmp_path, stack, port_bps=100 * M)
    near = hub.add_site("near", NEAR)
    _carry_no_groups_but_those_of_tunnels(lab)
    number = hub.reserve(20 * M, to=(SITE, NEAR), replication="underlay", group="239.1.2.3")["circuit"]
    active = hub.wait_state(number, "active")
    hub.hub.ask("PUT", "/v1/feeds/CONDUIT/pin", json={"transport": "multicast"})
    wait_for("a group on the circuit", lambda: _group(hub) is not None, 60)
    leg = _group(hub)
    assert leg is not None
    assert leg["circuits"] == [{"site": SITE, "circuit": number}, {"site": NEAR, "circuit": number}]
    assert leg["rate_bps"] == min(row["rate_bps"] for row in active["measurements"] if row["direction"] == "out")
    put = _put_until_the_group_brings_it(hub, near)
    hub.wait_shown(number, lambda shown: shown["used_out_bps"] > 0, "use of the circuit")
    # The far end is cut: its site is served by unicast, and loses nothing.
    lab.loss("far", 100, protocols=("udp",))
    hub.put("after-the-cut", random.Random(4).randbytes(1_000_000))
    assert len(hub.site.wait_received(put + 1, 60)) == len(near.wait_received(put + 1, 60)) == put + 1


def _group(hub: CircuitHub) -> dict[str, Any] | None:
    """The leg of a group on a circuit, if the plan has one."""
    legs = (leg for leg in hub.plan()["legs"] if leg["transport"] == "multicast" and leg["circuits"])
    return next(legs, None)


def _put_until_the_group_brings_it(hub: CircuitHub, near: SiteNode) -> int:
    """Sites join one by one, and get copies until then; returns the number of products needed."""
    for count in range(1, 31):
        hub.put(f"to-both-{count}", random.Random(count).randbytes(500_000))
        hub.site.wait_received(count)
        near.wait_received(count)
        leg = _group(hub)
        if leg is not None and leg["bytes"] >= 1_000_000:
            return count
    raise AssertionError(f"the group brings nothing: {hub.plan()['legs']} {hub.hub.log()[-2000:]}")


def _carry_no_groups_but_those_of_tunnels(lab: Lab) -> None:
    """The lab's network carries every group; this rule limits it to the groups of VXLAN's replication."""
    drop = "ip daddr 224.0.0.0/4 udp dport != 4789 counter drop"
    chain = "add chain inet provider out { type filter hook output priority 0; }"
    for command in ("add table inet provider", chain, f"add rule inet provider out oifname eth0 {drop}"):
        lab.output("hub", ["nft", command])


def _moment(events: list[dict[str, str]], state: str) -> float:
    return next(datetime.fromisoformat(event["at"]).timestamp() for event in events if event["state"] == state)
