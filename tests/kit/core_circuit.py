"""A site behind two relays: lossy edges, and between the relays a long core that other flows fill."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.capabilities import needs
from kit.flows import Flows
from kit.namespaces import Lab
from kit.path_trials import EDGE, LINE_BPS, MOST_LAG_US
from kit.patience import wait_for
from kit.relay import RelayNode
from kit.relayed_hub import FEED, PORT, RELAY_PORT, Products, RelayedHub
from kit.wire import Lane, Wire

M = 1_000_000
CORE_BPS, CIRCUIT_BPS, CORE_MS = 40 * M, 25 * M, 60
SETTINGS = "[scheduler]\nstep_s = 20\nwindow_s = 600\nagreeing_windows = 1\ndwell_s = 100\nchanges_per_day = 1000\n"
"""In the hub's time, which is ten times as fast. A way that brought too little rests for two minutes of ours."""
SITE, NEAR, FAR = "far", "depot", "campus"


@dataclass(frozen=True)
class CoreScene:
    """The hub, a lossy edge, the relay `depot`, the core, the relay `campus`, another lossy edge, and the site."""

    lab: Lab
    core: Wire
    provided: Wire
    """The provider's path, which only circuits use."""
    world: RelayedHub
    campus: RelayNode
    stack: ExitStack

    def way(self) -> dict[str, Any]:
        """The way of the site; an empty chain before there is one."""
        found = self.world.hub.ask("GET", f"/v1/sites/{SITE}/path")["way"]
        return dict(found or {"chain": [], "circuit": None})

    def wait_chain(self) -> None:
        """Waits until the site is led over both relays, and its session goes there.

        The campus alone is tried first: the loss between it and the hub shows only with products.
        """
        wait_for("a way over both relays", lambda: self.way()["chain"] == [FAR, NEAR], 300)
        wait_for("its tunnel", self._tunnels, 60)

    def fill(self, flows: int) -> None:
        """Other flows fill the core from now on."""
        self.stack.enter_context(Flows(self.lab, NEAR, FAR, self.core.right_address, flows=flows))

    def offer(self) -> None:
        """Offers circuits between the relays, and has the feed use them after a silence that is long enough."""
        for name, underlay in ((NEAR, self.provided.left_address), (FAR, self.provided.right_address)):
            port = {"port": f"{name}-port", "site": name, "rate_bps": CORE_BPS, "underlay": underlay}
            self.world.hub.ask("POST", "/v1/ports", json=port | {"interface": self.provided.device})
        terms = {"hub_port": f"{NEAR}-port", "ports": [f"{FAR}-port"], "rates_bps": [CIRCUIT_BPS], "setup_s": 1.0}
        self.world.hub.ask("PUT", "/v1/circuit-offers/core", json=terms)
        self.world.hub.ask("PUT", f"/v1/feeds/{FEED}/pin", json={"transport": "dynamic-circuit"})
        wait_for("terms of orders", lambda: self.world.plan()["figures"].get("demand"), 90)

    def is_over_circuit(self) -> bool:
        """True if the newest tunnel of the relay near the site leads into a circuit."""
        return "10.231." in (self.campus.lines("tunnel site") or [""])[-1]

    def orders(self) -> list[dict[str, Any]]:
        """Newest first."""
        return list(self.world.hub.ask("GET", "/v1/circuit-orders?limit=50")["orders"])

    def received_bytes(self) -> int:
        """The bytes that the site's line to its relay brought."""
        (link,) = json.loads(self.lab.output(SITE, ["ip", "-j", "-s", "link", "show", "wire1"]))
        return int(link["stats64"]["rx"]["bytes"])

    def rate_bps(self, seconds: float) -> float:
        """The mean rate to the site over a time."""
        began_s, before = time.monotonic(), self.received_bytes()
        time.sleep(seconds)
        return (self.received_bytes() - before) * 8 / (time.monotonic() - began_s)

    def kill_circuit(self) -> None:
        """Removes the circuit's interface at the relay near the site."""
        (link,) = json.loads(self.lab.output(FAR, ["ip", "-j", "link", "show", "type", "vxlan"]))
        self.lab.output(FAR, ["ip", "link", "del", link["ifname"]])

    def _tunnels(self) -> bool:
        return any(one["site"] == SITE and not one["ended"] for one in self.world.shown_relay(NEAR)["tunnels"])


@contextmanager
def core_scene(home: Path) -> Iterator[CoreScene]:
    """Reno everywhere, with 60 ms between the relays by either path."""
    needs("root", "netns", "veth", "bridge", "tun", "htb", "vxlan")
    hosts = ["hub", NEAR, FAR, SITE]
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(hosts))
        for host in hosts:
            lab.output(host, ["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno", "net.ipv4.ip_forward=1"])
        first = stack.enter_context(EDGE.wire(lab, "hub", NEAR, 1))
        last = stack.enter_context(EDGE.wire(lab, FAR, SITE, 2))
        lane = Lane(rate_bps=CORE_BPS, delay_ms=CORE_MS / 2, buffer_bytes=CORE_BPS // 8 * CORE_MS // 1_000)
        core, provided = (
            stack.enter_context(Wire(lab, NEAR, FAR, to_right=lane, to_left=lane, seed=seed)) for seed in (3, 4)
        )
        for host, to, over in (
            ("hub", last.right_address, first.right_address),
            ("hub", core.right_address, first.right_address),
            (NEAR, last.right_address, core.right_address),
            (FAR, first.left_address, core.left_address),
            (SITE, first.left_address, last.left_address),
        ):
            lab.output(host, ["ip", "route", "replace", f"{to}/32", "via", over])
        world, hub_address = (
            RelayedHub(lab, home, stack, multicast=False, more=SETTINGS),
            f"{first.left_address}:{PORT}",
        )
        world.site(SITE, SITE, hub_address, access_rate_bps=LINE_BPS, data_connections=0)
        near_address = f"{core.left_address}:{RELAY_PORT}"
        with Products(world, product_bytes=100_000, every_s=0.1) as products:
            products.more(100)
            ends = ("--circuits", provided.device)
            campus = world.relay(
                FAR,
                FAR,
                hub_address,
                *ends,
                to=[hub_address, near_address],
                address=f"{last.left_address}:{RELAY_PORT}",
                sites=[SITE],
            )
            world.relay(NEAR, NEAR, hub_address, *ends, address=near_address, sites=[FAR])
            scene = CoreScene(lab, core, provided, world, campus, stack)
            scene.wait_chain()
        yield scene
        for wire in (first, core, provided, last):
            wire.stop().needs_small_lag(max_lag_us=MOST_LAG_US)
