"""A circuit between two relays: hub - east = circuit = west, each on a host of its own, by a whole hub."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kit.capabilities import needs
from kit.circuit_bed import network_of
from kit.namespaces import Lab
from kit.patience import wait_for
from kit.relay import RelayNode
from kit.relayed_hub import PORT, RELAY_PORT, RelayedHub

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

M = 1_000_000
RELAYS = ("east", "west")
NOTICED_S = 2.0
LEFT_BEHIND_S = 5


class Scene:
    """Two relays at lines of 100 Mb/s, with ports for circuits, and the hub that enrolled them."""

    def __init__(self, lab: Lab, home: Path, stack: ExitStack) -> None:
        self.lab = lab
        for name in RELAYS:
            lab.rate(name, down_bps=100 * M)
        self.before = {name: network_of(lab, name) for name in RELAYS}
        self.world = RelayedHub(lab, home, stack, multicast=False)
        self.relays = {name: self._relay(name) for name in RELAYS}

    def _relay(self, name: str) -> RelayNode:
        hub = f"{self.lab.address('hub')}:{PORT}"
        relay = self.world.relay(
            name, name, hub, "--circuits", "eth0", address=f"{self.lab.address(name)}:{RELAY_PORT}", feeds=["*"]
        )
        port = {"port": f"{name}-eth0", "rate_bps": 80 * M, "site": name, "interface": "eth0"}
        self.world.hub.ask("POST", "/v1/ports", json=port | {"underlay": self.lab.address(name)})
        return relay

    def reserve(self) -> int:
        wish = {"hub": None, "sites": [{"site": name} for name in RELAYS], "begin": "now"}
        made = self.world.hub.ask("POST", "/v1/circuits", json=wish | {"rate_out_bps": 20 * M, "rate_in_bps": 8 * M})
        return int(made["circuit"])

    def shown(self, number: int) -> dict[str, Any]:
        return dict(self.world.hub.ask("GET", f"/v1/circuits/{number}"))

    def wait_state(self, number: int, *states: str) -> dict[str, Any]:
        try:
            wait_for(f"circuit that is {states}", lambda: self.shown(number)["state"] in states, 60)
        except AssertionError:
            raise AssertionError(f"{self.shown(number)}\n{self.world.hub.log()[-3000:]}") from None
        return self.shown(number)

    def interface(self, name: str) -> str | None:
        """The circuit's interface at a relay."""
        names = (line.split()[0] for line in self.lab.output(name, ["ip", "-brief", "link"]).splitlines())
        return next((found.partition("@")[0] for found in names if found.startswith("db")), None)

    def wait_untouched(self, *names: str) -> None:
        for name in names:
            try:
                wait_for("nothing of ours", partial(self._is_untouched, name), LEFT_BEHIND_S)
            except AssertionError:
                assert network_of(self.lab, name) == self.before[name]

    def _is_untouched(self, name: str) -> bool:
        return network_of(self.lab, name) == self.before[name]

    def connected(self, *chain: str) -> list[str]:
        """The status codes of the tunnels that the relay west makes along a chain."""
        codes = []
        with (
            self.lab.inside("west"),
            socket.create_connection((self.lab.address("west"), RELAY_PORT), timeout=20) as way,
        ):
            for target in chain:
                way.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
                codes.append(way.recv(4_096).decode().split()[1])
        return codes


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", *RELAYS]))
        yield Scene(lab, tmp_path, stack)


def test_a_circuit_between_two_relays_is_made_probed_watched_and_removed(scene: Scene) -> None:
    number = scene.reserve()
    active = scene.wait_state(number, "active")
    print([event["sentence"] for event in active["events"]], active["measurements"])
    rates = {(row["site"], row["direction"]): row["rate_bps"] for row in active["measurements"]}
    assert rates["west", "out"] == pytest.approx(18 * M, rel=0.15)
    assert rates["west", "in"] == pytest.approx(7.2 * M, rel=0.15)
    for name in RELAYS:
        assert scene.interface(name) is not None
        assert "htb" in scene.lab.output(name, ["tc", "class", "show", "dev", "eth0"])

    inner = active["ends"][0]["address"].partition("/")[0]
    hub = f"{scene.lab.address('hub')}:{PORT}"
    assert scene.connected(f"{inner}:{RELAY_PORT}", hub) == ["200", "200"]
    assert scene.connected(f"{inner}:22") == ["403"]

    cut_at = time.time()
    scene.lab.output("west", ["ip", "link", "delete", str(scene.interface("west"))])
    down = scene.wait_state(number, "down", "failed")
    noticed = next(event for event in reversed(down["events"]) if event["state"] != "active")
    took_s = datetime.fromisoformat(noticed["at"]).timestamp() - cut_at
    print(f"noticed after {took_s:.2f} s: {noticed['sentence']}")
    assert took_s < NOTICED_S
    assert "nothing came back" in noticed["sentence"]

    scene.world.hub.ask("DELETE", f"/v1/circuits/{number}")
    scene.wait_state(number, "cancelled")
    scene.wait_untouched(*RELAYS)
    assert scene.connected(f"{inner}:{RELAY_PORT}") == ["403"]


def test_a_relay_that_is_killed_takes_the_circuit_down_and_leaves_nothing_after_its_restart(scene: Scene) -> None:
    number = scene.reserve()
    scene.wait_state(number, "active")
    for name in RELAYS:
        scene.relays[name].kill()
        scene.wait_state(number, "down", "failed")
        scene.relays[name].start()
        scene.wait_state(number, "active")

    scene.relays["east"].kill()
    gone = scene.wait_state(number, "down", "failed")
    assert "east" in gone["reason"]
    scene.world.hub.ask("DELETE", f"/v1/circuits/{number}")
    scene.wait_state(number, "cancelled")
    assert scene.interface("east") is not None
    scene.relays["east"].start()
    scene.wait_untouched(*RELAYS)

    second = scene.reserve()
    scene.wait_state(second, "active")
    assert scene.relays["west"].stop() == 0
    scene.wait_untouched("west")
