"""A whole hub and a site behind a real provider: the scheduler orders circuits there, and a feed rides on them.

Both hosts have an access of the provider already, an interface without tags of ours: kernels without 802.1Q have no
tagged ends. Its VLAN is in the port's STP, and its address is the circuit's.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from downburst.domain.ordering.providers import Provider
from downburst_circuits.nsi.words import Listed
from kit.circuit_hub import CircuitHub, Shown
from kit.demand_trains import SETTINGS, Trains
from kit.namespaces import run_to_end
from kit.patience import wait_for
from kit.peers.hub import existing, listed
from kit.peers.peer import Peer
from kit.peers.plane import INNER
from kit.peers.relayed import relayed
from kit.whole_hub import DOWNBURST

VLANS = {"hub": 100, "unl": 120}
RATE_BPS, PORT_BPS = 25_000_000, 50_000_000
PORT_RATE = "50M"
SETUP_S = 10.0
"""As the provider states it: a circuit is late after 30 s, and its first window is that, the hold and 60 s."""
SILENCE_S = 26.0
"""Longer than the set-up at an agent that has just started."""
LOOKS_BACK = SETTINGS.replace("window_s = 60", "window_s = 300")
"""A plan has a circuit on demand if it has seen silences that are longer than the set-up: also in a long train."""


class ProviderHub(CircuitHub):
    """`downburst hub` whose ports lead into the provider's network."""

    def __init__(self, peer: Peer, directory: Path, stack: ExitStack) -> None:
        self.peer = peer
        stack.enter_context(peer.plane.access(VLANS["hub"], VLANS["unl"]))
        stack.enter_context(relayed(peer.plane.lab, "hub", peer.port))
        super().__init__(peer.plane.lab, directory, stack, port_bps=PORT_BPS, settings=LOOKS_BACK, far="unl")

    def interface(self, host: str) -> str:
        return f"v{VLANS[host]}"

    def command(self, *argv: str) -> None:
        """One of the operator's commands, on the hub's host."""
        environment = {**os.environ, "DOWNBURST_HUB": f"http://{self.hub.http}"}
        done = subprocess.run(
            self.lab.command("hub", [DOWNBURST, *argv]),
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def define(self, provider: Provider) -> None:
        """The provider's record by its command, and the offer by a declaration."""
        files = provider.certificate
        assert files is not None
        options = {
            "url": provider.url,
            "provider-nsa": provider.provider_nsa,
            "requester-nsa": provider.requester_nsa,
            "dialect": provider.dialect.value,
            "certificate": files.certificate,
            "key": files.key,
            "authorities": files.authorities,
            "service-type": provider.service_type,
        }
        given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        self.command("circuits", "providers", "set", provider.name, *given)
        offer = {"offer": "campus", "provider": provider.name, "hub_port": self.port("hub"), "setup_s": SETUP_S}
        offer |= {"ports": [self.port("unl")], "rates_bps": [RATE_BPS]}
        declared = self.hub.directory / "offers.json"
        declared.write_text(json.dumps({"circuit_offers": [offer]}))
        self.command("apply", "--file", str(declared), "--yes")

    def port(self, host: str) -> str:
        """The name of a host's port."""
        return f"{host}-{self.interface(host)}"

    def carried_bytes(self) -> int:
        """Bytes that the interface of the circuit has sent from the hub."""
        shown = json.loads(self.lab.output("hub", ["ip", "-s", "-j", "link", "show", "dev", self.interface("hub")]))
        return int(shown[0]["stats64"]["tx"]["bytes"])

    def _add_port(self, host: str, site: str | None = None) -> None:
        stp = self.peer.stp(host, str(VLANS[host]))
        at = ("--site", site) if site else ()
        ends = ("--interface", self.interface(host), "--underlay", INNER[host], "--stp", str(stp))
        self.command("ports", "add", self.port(host), "--rate", PORT_RATE, *ends, *at)


class Scheduled:
    """Trains of products of such a hub, with the provider's own view of its circuits."""

    def __init__(self, peer: Peer, directory: Path, stack: ExitStack) -> None:
        self.peer, self.provider = peer, peer.provider()
        self.before = {one.connection_id for one in self.listed()}
        self.hub = ProviderHub(peer, directory, stack)
        self.trains = Trains(self.hub, peer.plane.lab)
        self.trains.play(2, seconds=1, every_s=SILENCE_S)
        self.hub.define(self.provider)
        self.hub.hub.ask("PUT", "/v1/feeds/CONDUIT/pin", json={"transport": "dynamic-circuit"})
        self.hub.wait_transport("dynamic-circuit")

    def listed(self) -> list[Listed]:
        """All reservations of the hub that the provider lists, in whatever state."""
        return asyncio.run(listed(self.provider))

    def existing(self) -> list[Listed]:
        """Those that have not ended."""
        return asyncio.run(existing(self.provider))

    def made(self) -> set[str]:
        """The connections made since the beginning, as far as the provider lists them."""
        return {one.connection_id for one in self.listed()} - self.before

    def wait_riding(self) -> Shown:
        """Waits until the feed's plan has it on a circuit; returns the order."""
        order = self.trains.wait_step("up", 120)
        wait_for("a plan on the circuit", self.trains.is_riding, 10)
        return order

    def open_orders(self) -> list[Shown]:
        return [one for one in self.trains.orders() if one["step"] in ("ordered", "up", "releasing")]

    def wait_over(self, order: Shown) -> Shown:
        """Waits until an order is not open any more, and returns it."""
        number = order["order"]
        wait_for("the end of an order", lambda: all(one["order"] != number for one in self.open_orders()), 120)
        return next(one for one in self.trains.orders() if one["order"] == number)

    def watched_until(self, holds: Callable[[], bool]) -> tuple[set[str], int]:
        """The connections that the provider lists until something holds, and the most that exist at once."""
        seen, counts = set[str](), [0]

        def is_over() -> bool:
            seen.update(self.made())
            counts.append(len(self.existing()))
            return holds()

        wait_for("the end of the watch", is_over, 180)
        return seen, max(counts)

    def assert_nothing_left(self) -> None:
        """Neither orders, reservations, paths nor ends; every product came once."""
        wait_for("the end of all orders", lambda: not self.open_orders(), 120)
        wait_for("the end of all reservations", lambda: self.existing() == [], 120)
        wait_for("the end of all paths", lambda: self.peer.plane.paths() == [], 30)
        self.hub.wait_untouched()
        received = sorted(name for name, _ in self.hub.site.received().values())
        assert received == sorted(self.trains.put_s), "a product was lost or doubled"

    def path_bytes(self) -> int:
        """Bytes that the provider's path has taken from the hub."""
        argv = [
            "ip",
            "-n",
            self.hub.lab.namespace("core"),
            "-s",
            "-j",
            "link",
            "show",
            "dev",
            self.hub.interface("hub"),
        ]
        return int(json.loads(run_to_end(argv))[0]["stats64"]["rx"]["bytes"])
