"""A circuit that begins at a sender, on hosts of a lab: made and ridden there, and left when the sender is lost."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from downburst.foundation.file_names import decode
from kit.capabilities import needs
from kit.circuit_bed import network_of
from kit.kafka import kafka
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.patience import wait_for
from kit.postgres import postgres
from kit.senders import Sender, nodes_of
from kit.whole_hub import WholeHub

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

M = 1_000_000
HOSTS = ("hub", "one", "two", "far")
FEED, SITE = "NGRID", "far.example"
NOTICED_S = 2.0


class Scene:
    """A hub and two senders with a host each, over servers on the hub's host, and one site that takes one feed."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.lab = lab = stack.enter_context(Lab(HOSTS))
        self.before = {host: network_of(lab, host) for host in HOSTS}
        with lab.inside("hub"):
            server = stack.enter_context(postgres(lab.address("hub")))
            broker = stack.enter_context(kafka(lab.address("hub")))
            url = server.url(server.database())
        section = (
            f'[kafka]\nservers = "{broker.address}"\nprefix = "{home.name}"\nproducts = "ingest"\nreplication = 1\n'
        )
        self.hub = WholeHub(
            home / "hub",
            http="127.0.0.1:7371",
            sites="0.0.0.0:7370",
            prefix=lab.command("hub", []),
            inside=partial(lab.inside, "hub"),
            ledger_url=url,
            more=section,
        )
        stack.callback(self.hub.stop)
        self.hub.start()
        self.hub.ask("POST", "/v1/feeds", json={"feed": FEED, "class": "grid"})
        self.senders = {name: self._sender(home, stack, name, section) for name in ("one", "two")}
        for name in self.senders:
            self._add_port(name, sender=name)
        self.site = self._site(home, stack)
        self.source = Source(self)
        stack.callback(self.source.finish)

    def _sender(self, home: Path, stack: ExitStack, name: str, section: str) -> Sender:
        sender = Sender(
            home / name,
            self.hub,
            section,
            prefix=self.lab.command(name, []),
            inside=partial(self.lab.inside, name),
            sites=f"{self.lab.address(name)}:7370",
        )
        stack.callback(_end, sender)
        return sender.start()

    def _add_port(self, host: str, **owner: str) -> None:
        port = {"port": f"{host}-eth0", "rate_bps": 80 * M, "interface": "eth0", "underlay": self.lab.address(host)}
        self.hub.ask("POST", "/v1/ports", json=port | owner)

    def _site(self, home: Path, stack: ExitStack) -> SiteNode:
        self.hub.ask("POST", "/v1/sites", json={"site": SITE})
        self.hub.ask("POST", f"/v1/sites/{SITE}/subscriptions", json={"feed": FEED, "pattern": ".*"})
        self._add_port("far", site=SITE)
        site = SiteNode(
            home / "far",
            f"{self.lab.address('hub')}:7370",
            prefix=self.lab.command("far", []),
            arguments=["--circuits", "eth0"],
        )
        site.directory.mkdir(parents=True)
        site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{SITE}/tokens", json={})["token"])
        stack.callback(site.stop)
        site.start()
        wait_for("a site that a sender serves", lambda: self.serves(site), 60)
        positions = site.directory / "state/positions"
        wait_for("a site that has begun the feed", lambda: list(positions.glob("*.cbor")), 60)
        return site

    def serves(self, site: SiteNode) -> str | None:
        """The name of the sender that serves the feed to the site."""
        names = {sender.sites: name for name, sender in self.senders.items()}
        served = (names.get(address) for address, feeds in nodes_of(site).items() if FEED in feeds)
        return next(served, None)

    def wait_served(self, name: str) -> None:
        wait_for(f"the site at the sender {name}", lambda: self.serves(self.site) == name, 60)

    def reserve(self, port: str) -> int:
        wish = {"hub": {"port": port}, "sites": [{"site": SITE}], "rate_out_bps": 20 * M, "rate_in_bps": 8 * M}
        return int(self.hub.ask("POST", "/v1/circuits", json=wish)["circuit"])

    def shown(self, number: int) -> dict[str, Any]:
        return dict(self.hub.ask("GET", f"/v1/circuits/{number}"))

    def wait_state(self, number: int, *states: str) -> None:
        try:
            wait_for(f"circuit that is {states}", lambda: self.shown(number)["state"] in states, 60)
        except AssertionError:
            logs = [self.hub.log(), *(sender.log() for sender in self.senders.values())]
            raise AssertionError("\n".join([str(self.shown(number)), *(log[-3000:] for log in logs)])) from None

    def transport(self) -> str:
        return str(self.hub.ask("GET", f"/v1/feeds/{FEED}/plans?limit=1")[0]["transport"])

    def riding(self, host: str) -> list[str]:
        """The connections of a host inside circuits."""
        return self.lab.output(host, ["ss", "-Htn", "src", "10.231.0.0/16"]).splitlines()

    def interface(self, host: str) -> str | None:
        """A circuit's interface on a host."""
        names = (line.split()[0] for line in self.lab.output(host, ["ip", "-brief", "link"]).splitlines())
        return next((name.partition("@")[0] for name in names if name.startswith("db")), None)

    def sent_bytes(self, host: str) -> int:
        """The bytes that the circuit's interface of a host has sent, by the kernel's counter."""
        name = self.interface(host)
        assert name is not None
        return int(self.lab.output(host, ["cat", f"/sys/class/net/{name}/statistics/tx_bytes"]))

    def wait_untouched(self, *hosts: str) -> None:
        for host in hosts:
            try:
                wait_for("nothing of ours", partial(self._is_untouched, host), 30)
            except AssertionError:
                assert network_of(self.lab, host) == self.before[host]

    def finish(self) -> None:
        """Checks that every acknowledged product is at the site, once."""
        self.source.finish()
        wait_for("all products at the site", lambda: self.source.names <= self.arrived().keys(), 120)
        assert set(self.arrived().values()) == {1}, "one came twice"

    def arrived(self) -> Counter[str]:
        """The files at the site by product."""
        root = self.site.directory / "received"
        paths = (path for path in root.rglob("*") if path.is_file())
        return Counter(decode(str(path.relative_to(root))).product_id for path in paths)

    def _is_untouched(self, host: str) -> bool:
        return network_of(self.lab, host) == self.before[host]


class Source(threading.Thread):
    """Puts product after product from the hub's host until the end."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(daemon=True)
        self._scene, self._over = scene, threading.Event()
        self.names: set[str] = set()

    def run(self) -> None:
        number = 0
        while not self._over.wait(0.1):
            number += 1
            name = f"p{number}"
            self._scene.hub.ask("PUT", f"/v1/feeds/{FEED}/products/{name}", content=b"%d " % number * 5_000)
            self.names.add(name)

    def more(self, products: int) -> None:
        """Waits until further products are at the site."""
        goal = len(self.names) + products
        wait_for(f"{products} more products", lambda: len(self.names) >= goal, 60)
        wanted = set(self.names)
        wait_for("these at the site", lambda: wanted <= self._scene.arrived().keys(), 60)

    def finish(self) -> None:
        self._over.set()
        if self.ident is not None:
            self.join(timeout=60)
        assert not self.is_alive()


def _end(sender: Sender) -> None:
    if sender.process.poll() is None:
        sender.kill_all()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with ExitStack() as stack:
        yield Scene(tmp_path, stack)


@pytest.mark.long(90)
def test_a_feed_rides_a_senders_circuit_and_leaves_it_when_that_is_killed(scene: Scene) -> None:
    near, other = "two", "one"
    scene.source.start()
    number = scene.reserve(f"{near}-eth0")
    scene.wait_state(number, "active")
    assert scene.interface("hub") is None, "the hub's own node has no end of it"
    scene.wait_served(near)
    scene.hub.ask("PUT", f"/v1/feeds/{FEED}/pin", json={"transport": "static-circuit"})
    wait_for("a plan by the circuit", lambda: scene.transport() == "static-circuit", 60)
    wait_for("connections on the circuit", lambda: scene.riding(near), 60)
    before = scene.sent_bytes(near)
    scene.source.more(40)
    carried = scene.sent_bytes(near) - before
    print(f"40 products and more: {carried} bytes on the circuit")
    assert carried > 40 * 10_000, "products ride"
    wait_for("the use in the api", lambda: scene.shown(number)["used_out_bps"] > 0, 10)

    killed_s = time.monotonic()
    scene.senders[near].kill_all()
    wait_for("a circuit that is down", lambda: scene.shown(number)["state"] == "down", 20)
    noticed_s = time.monotonic() - killed_s
    wait_for("a plan without the circuit", lambda: scene.transport() != "static-circuit", 20)
    left_s = time.monotonic() - killed_s
    print(f"circuit down after {noticed_s:.2f} s, feed off it after {left_s:.2f} s")
    assert left_s <= NOTICED_S + SLACK_S
    scene.wait_served(other)
    scene.source.more(20)
    assert not scene.riding(other), "it takes the routed path"
    assert scene.interface(near), "the killed node could remove nothing"

    scene.hub.ask("DELETE", f"/v1/circuits/{number}")
    scene.wait_state(number, "cancelled")
    scene.senders[near].start()
    scene.wait_untouched(near, "far")
    scene.source.more(20)
    scene.finish()


@pytest.mark.nightly
def test_a_sender_that_returns_gets_its_circuit_and_its_feed_again(scene: Scene) -> None:
    scene.source.start()
    number = scene.reserve("two-eth0")
    scene.wait_state(number, "active")
    scene.hub.ask("PUT", f"/v1/feeds/{FEED}/pin", json={"transport": "static-circuit"})
    wait_for("connections on the circuit", lambda: scene.riding("two"), 90)
    scene.source.more(10)
    scene.senders["two"].kill_all()
    scene.wait_served("one")
    scene.source.more(10)
    scene.senders["two"].start()
    scene.wait_served("two")
    scene.wait_state(number, "active")
    wait_for("connections on the circuit", lambda: scene.riding("two"), 60)
    scene.source.more(10)
    scene.hub.ask("DELETE", f"/v1/circuits/{number}")
    scene.wait_untouched("two", "far")
    scene.finish()


SLACK_S = 1.0
"""The waits of this test look four times a second, and each look costs a request on a busy machine."""
