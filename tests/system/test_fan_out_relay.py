"""Legs that an enrolled relay sends into its network: one copy on the long path, and no site depends on it."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for
from kit.relay import RelayNode

pytestmark = [pytest.mark.system, pytest.mark.root]

FEED = "CONDUIT"
SITES = ("oslo", "bergen", "narvik", "tromso")
RELAY = "campus"
LEG = 81
GROUP = "232.77.1.9"
"""A group of one source: sites receive nothing from another sender than the relay."""
RATE_BPS = 60_000_000
PRODUCT_BYTES = 300_000


@dataclass
class World:
    """A hub, a relay and four sites behind it, each on a host of its own."""

    lab: Lab
    home: Path
    hub: HubNode
    relay: RelayNode
    sites: dict[str, SiteNode]
    fan_out: str
    put: dict[str, str] = field(default_factory=dict)
    sequences: list[int] = field(default_factory=list)
    epoch: str = ""

    def plan(self, version: int) -> None:
        """Has the relay send the leg for all sites."""
        self.hub.multicast(FEED, version, LEG, RATE_BPS, SITES, group=GROUP, relay=RELAY, fan_out=self.fan_out)

    def wait_joined(self, times: int = 1) -> None:
        """Waits until each site has joined the leg so many times."""

        def joined() -> bool:
            return all(len(self.events(site, "joined")) >= times for site in SITES)

        wait_for("all sites on the leg", joined, 60)

    def events(self, site: str, state: str) -> list[object]:
        """The changes of a site on the leg."""
        told = self.hub.events_named("leg")
        return [event for event in told if (event["leg"], event["site"], event["state"]) == (LEG, site, state)]

    def send(self, products: int) -> int:
        """Puts further products; returns their bytes."""
        for _ in range(products):
            content = os.urandom(PRODUCT_BYTES)
            name = f"product {len(self.put)}"
            answer = self.hub.put(FEED, name, content)
            self.put[name] = sha256(content).hexdigest()
            self.sequences.append(answer["sequence"])
            self.epoch = answer["epoch"]
        return products * PRODUCT_BYTES

    def complete(self) -> None:
        """Waits for all products at all sites; fails if one is lost, changed or doubled."""
        for name, site in self.sites.items():
            received = site.wait_received(len(self.put), 120)
            assert dict(received.values()) == self.put, name
            assert len(received) == len(self.put), name
        assert self.hub.drained()

    def sent_bytes(self, host: str) -> int:
        """Bytes that have left a host."""
        return int(self.lab.output(host, ["cat", "/sys/class/net/eth0/statistics/tx_bytes"]))

    def transports(self, sequence: int) -> dict[str, str]:
        """The transport of a product to each site, by the receipts at the hub."""
        found = self.hub.do("deliveries", feed=FEED, sequence=sequence, epoch=self.epoch)["products"][0]
        return {
            site["site"]: receipt["transport"]
            for site in found["sites"]
            for receipt in site["receipts"]
            if site["site"] in SITES and receipt["outcome"] == "stored"
        }


@pytest.fixture(params=["group", "unicast"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    needs("root", "netns", "veth", "bridge")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "relay", *SITES], snooping=True))
        hub = HubNode(tmp_path / "hub", listen=f"{lab.address('hub')}:7370", prefix=lab.command("hub", []))
        stack.callback(hub.stop)
        hub.start()
        hub.feed(FEED)
        sites = {}
        for name in SITES:
            site = SiteNode(tmp_path / name, hub.address, prefix=lab.command(name, []))
            hub.site(name, {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
            stack.callback(site.stop)
            sites[name] = site.start()
        hub.wait_connected(*SITES)
        for site in sites.values():
            site.wait_begun(FEED)
        relay = enrolled(lab, tmp_path, hub)
        stack.callback(relay.stop)
        yield World(lab, tmp_path, hub, relay, sites, request.param)


def enrolled(lab: Lab, home: Path, hub: HubNode) -> RelayNode:
    """Starts a relay with a token of its own."""
    hub.allow[RELAY] = [FEED]
    hub.site(RELAY, token_file=home / "relay" / "token")
    options = ("--token-file", str(home / "relay" / "token"), "--dir", str(home / "relay"), "--interface", "eth0")
    relay = RelayNode(
        home / "relay.log",
        (),
        listen=f"{lab.address('relay')}:7379",
        prefix=lab.command("relay", []),
        arguments=("--hub", hub.address, *options, "--ask-again-after", "1"),
    )
    relay.start()
    hub.wait_connected(RELAY)
    return relay


def refusal(world: World) -> str:
    """The relay's answer to a site that requests a tunnel."""
    host, port = world.relay.address.split(":")
    with world.lab.inside("oslo"):
        stream = socket.create_connection((host, int(port)), timeout=10)
    with stream:
        target = world.hub.address
        stream.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        return stream.recv(4096).decode()


def test_one_copy_on_the_long_path_reaches_four_sites_and_each_answers_for_itself(world: World) -> None:
    world.plan(2)
    world.wait_joined()
    before = world.sent_bytes("hub")
    sent = world.send(40)
    world.complete()
    on_path = world.sent_bytes("hub") - before
    assert on_path < 1.2 * sent, f"{on_path} bytes left the hub for {sent} bytes of products to four sites"
    copies = len(SITES) if world.fan_out == "unicast" else 1
    assert world.sent_bytes("relay") > copies * sent, "the relay has sent to all sites"
    by_leg = [world.transports(sequence) for sequence in world.sequences]
    assert all(set(transports) == set(SITES) for transports in by_leg)
    shares = [transport == "multicast" for transports in by_leg for transport in transports.values()]
    assert sum(shares) > 0.9 * len(shares)
    assert not (world.home / "relay" / "log").exists(), "it stores no products"
    assert refusal(world).startswith("HTTP/1.1 200"), "it carries tunnels, too"


def test_sites_of_a_relay_that_is_killed_in_mid_product_go_on_by_unicast_and_come_back(world: World) -> None:
    world.plan(2)
    world.wait_joined()
    world.send(60)
    wait_for("some products", lambda: len(world.sites["oslo"].received()) >= 5)
    world.relay.kill()
    assert len(world.sites["oslo"].received()) < 60, "it is killed while products are on their way"
    world.complete()
    wait_for("all sites off the leg", lambda: all(world.events(site, "left") for site in SITES))
    assert set(world.transports(world.sequences[-1]).values()) == {"unicast"}
    world.relay.start()
    world.wait_joined(times=2)
    world.send(10)
    world.complete()
    assert set(world.transports(world.sequences[-1]).values()) == {"multicast"}


def test_a_relay_whose_credential_is_revoked_carries_nothing_until_it_has_another_token(world: World) -> None:
    world.plan(2)
    world.wait_joined()
    world.hub.credentials[RELAY] = []
    world.hub.tell_sites()
    world.send(10)
    world.complete()
    wait_for("the reason in the relay's log", lambda: world.relay.lines("this relay carries nothing now"))
    refused = refusal(world)
    assert refused.startswith("HTTP/1.1 503")
    assert "the hub refuses this relay" in refused
    world.hub.site(RELAY, token_file=world.home / "relay" / "token")
    world.wait_joined(times=2)
    assert refusal(world).startswith("HTTP/1.1 200")
    world.send(5)
    world.complete()


def test_a_feed_that_the_relay_is_not_granted_is_refused_and_goes_by_unicast(world: World) -> None:
    world.hub.allow[RELAY] = ["IDS|DDPLUS"]
    world.hub.tell_sites()
    world.plan(2)
    world.hub.wait_told(f"relay {RELAY} is not granted feed {FEED}")
    world.send(5)
    world.complete()
    assert not world.relay.lines("a leg leaves here")
    assert not any(world.events(site, "joined") for site in SITES)
    world.hub.allow[RELAY] = [FEED]
    world.hub.tell_sites()
    world.wait_joined()
    world.send(5)
    world.complete()
