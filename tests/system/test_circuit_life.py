"""Circuits from the request to the end of the window, by a whole hub: measured, fallen back from, changed, ended."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest

from kit.busy import Stalls
from kit.capabilities import needs
from kit.circuit_bed import network_of
from kit.circuit_hub import SITE, CircuitHub
from kit.namespaces import Lab
from kit.provider import Line

pytestmark = [pytest.mark.system, pytest.mark.root]

M = 1_000_000


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with ExitStack() as stack:
        yield stack


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


def test_a_refused_change_leaves_the_traffic_alone_and_the_end_leaves_nothing(
    stack: ExitStack, tmp_path: Path
) -> None:
    lab = stack.enter_context(Lab(["hub", "far"]))
    hub = CircuitHub(lab, tmp_path, stack, port_bps=100 * M)
    first, other = hub.reserve(50 * M)["circuit"], hub.reserve(40 * M)["circuit"]
    hub.wait_state(first, "active")
    hub.wait_state(other, "active")
    hub.hub.ask("PUT", "/v1/feeds/CONDUIT/pin", json={"transport": "static-circuit"})
    hub.wait_transport("static-circuit")
    hub.put("three-seconds-of-it", random.Random(1).randbytes(15 * M))
    hub.wait_shown(first, lambda shown: shown["used_out_bps"] > 30 * M, "use of the circuit")
    stood, connections = network_of(lab, "hub"), hub.connections()
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


def _moment(events: list[dict[str, str]], state: str) -> float:
    return next(datetime.fromisoformat(event["at"]).timestamp() for event in events if event["state"] == state)
