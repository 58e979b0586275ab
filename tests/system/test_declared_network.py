"""A network that an operator declares over HTTP: a site of ours translates a circuit there, as frames show."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.capture import Capture
from kit.circuit_hub import CircuitHub
from kit.namespaces import Lab
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root]

M = 1_000_000
PORT_BPS, MIDDLE = 100 * M, "middle.example"


def topology(node: str | None) -> dict[str, object]:
    """The hub's port and that of the far site, joined by a switch that translates."""
    hops = (("near", "hub-eth0", "s-1", 3021), ("last", "s-2", "far-eth0", 3123))
    links = [
        {"name": name, "a": a, "z": z, "az_bps": PORT_BPS, "za_bps": PORT_BPS}
        | {"tags": {"kind": "vni", "first": first, "last": first + 9}}
        for name, a, z, first in hops
    ]
    switch = {"name": "s", "domain": "lab", "ports": ["s-1", "s-2"], "translates": True, "node": node}
    return {"domains": [{"name": "lab"}], "switches": [switch], "links": links}


def test_a_site_that_a_declared_switch_names_translates_between_its_hops(tmp_path: Path) -> None:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "far", "middle"]))
        hub = CircuitHub(lab, tmp_path, stack, port_bps=PORT_BPS)
        hub.add_site("middle", MIDDLE)
        refused = hub.refused("PUT", "/v1/topology", json=topology("nowhere.example"))
        assert "needs exactly one port" in refused.json()["detail"]
        hub.hub.ask("PUT", "/v1/topology", json=topology(MIDDLE))
        number = hub.reserve(20 * M)["circuit"]
        active = hub.wait_state(number, "active", 60)
        assert [(hop["link"], hop["tag"]) for hop in active["path"]] == [("near", 3021), ("last", 3123)]
        hub.hub.ask("PUT", "/v1/feeds/CONDUIT/pin", json={"transport": "static-circuit"})
        # The site in the middle has the feed as well, without a circuit.
        legs = {"unicast", "static-circuit"}
        wait_for("a leg by the circuit", lambda: {leg["transport"] for leg in hub.plan()["legs"]} == legs, 30)
        found: dict[tuple[str, str], set[int]] = {}
        names = {lab.address(host): host for host in lab.hosts}
        with Capture(lab, "middle") as capture:
            hub.put("by-two-hops", b"x" * 200_000)
            hub.site.wait_received(1)
            for seen in capture.tunnels():
                found.setdefault((names[seen.source], names[seen.to]), set()).add(seen.vni)
        hops = {("hub", "middle"): {3021}, ("middle", "far"): {3123}}
        assert found == hops | {pair[::-1]: tags for pair, tags in hops.items()}
        hub.hub.ask("DELETE", f"/v1/circuits/{number}")
        hub.wait_state(number, "cancelled")
        hub.wait_untouched()
