"""Relays between sites and a hub: they die, stall, stand in a row, lie, and refuse; no product is lost or doubled."""

import os
import signal
import time
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
from kit.tampering import TamperingRelay

pytestmark = [pytest.mark.system, pytest.mark.root]

FEED = "CONDUIT"
PRODUCT_BYTES = 400_000
SITE_RATE_BPS = 40_000_000


@dataclass
class World:
    """A hub, hosts for relays, and a site at a line of its own."""

    lab: Lab
    home: Path
    stack: ExitStack
    hub: HubNode
    put: dict[str, str] = field(default_factory=dict)

    def relay(self, host: str, *to: str) -> RelayNode:
        """Starts a relay on a host."""
        listen = f"{self.lab.address(host)}:7379"
        relay = RelayNode(self.home / f"{host}.log", to, listen=listen, prefix=self.lab.command(host, []))
        relay.start()
        self.stack.callback(relay.stop)
        return relay

    def site(self, *arguments: str) -> SiteNode:
        """Starts the site with these further arguments."""
        site = SiteNode(self.home / "far", self.hub.address, prefix=self.lab.command("far", []), arguments=arguments)
        wish = {"feed": FEED, "pattern": ".*", "not_pattern": None}
        self.hub.site("far", wish, token_file=site.token_file)
        self.stack.callback(site.stop)
        site.start()
        return site

    def send(self, products: int) -> None:
        """Puts further products."""
        for _ in range(products):
            content = os.urandom(PRODUCT_BYTES)
            name = f"product {len(self.put)}"
            self.hub.put(FEED, name, content)
            self.put[name] = sha256(content).hexdigest()

    def complete(self, site: SiteNode) -> None:
        """Waits for all products; fails if one is lost, changed or doubled."""
        received = site.wait_received(len(self.put), 120)
        assert dict(received.values()) == self.put
        assert len(received) == len(self.put)
        assert self.hub.drained()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    needs("root", "netns", "veth", "bridge")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "relay", "second", "far"]))
        hub = HubNode(tmp_path / "hub", listen=f"{lab.address('hub')}:7370", prefix=lab.command("hub", []))
        stack.callback(hub.stop)
        hub.start()
        hub.feed(FEED)
        lab.rate("far", down_bps=SITE_RATE_BPS)
        yield World(lab, tmp_path, stack, hub)


def begun(world: World, *arguments: str) -> SiteNode:
    site = world.site(*arguments)
    world.hub.wait_connected("far")
    site.wait_begun(FEED)
    return site


def test_a_relay_that_is_killed_in_mid_product_is_left_for_the_direct_way(world: World) -> None:
    relay = world.relay("relay", world.hub.address)
    site = begun(world, "--via", relay.address)
    assert relay.lines("tunnel site")
    world.send(20)
    wait_for("some products", lambda: len(site.received()) >= 3)
    assert len(site.received()) < 20, "it is killed while products are on their way"
    relay.kill()
    world.complete(site)
    assert site.log().count("connected site") == 2, site.log()
    relay.start()
    assert site.stop() == 0
    site.start()
    wait_for("the site at the relay again", lambda: relay.lines("tunnel site"))
    world.send(2)
    world.complete(site)


def test_the_second_relay_takes_over_and_a_site_for_relays_only_waits_for_one(world: World) -> None:
    relay, second = world.relay("relay", world.hub.address), world.relay("second", world.hub.address)
    site = begun(world, "--via", relay.address, "--via", second.address, "--via-only")
    relay.kill()
    world.send(5)
    world.complete(site)
    assert second.lines("tunnel site")
    second.kill()
    wait_for("the reason in the site's log", lambda: f"by the relay {second.address}" in site.log())
    world.send(2)
    second.start()
    world.complete(site)


def test_two_relays_in_a_row_carry_a_session_and_its_data_connections(world: World) -> None:
    second = world.relay("second", world.hub.address)
    relay = world.relay("relay", second.address)
    site = begun(world, "--via", f"{relay.address},{second.address}", "--via-only")
    world.hub.data_connections["far"] = 2
    world.hub.tell_sites()
    wait_for("both data connections through both relays", lambda: len(second.lines("tunnel site")) >= 3)
    world.send(10)
    world.complete(site)
    assert site.stop() == 0
    ended = wait_for("the accounts of the tunnels", lambda: len(relay.lines("tunnel ended")) >= 3)
    assert ended
    accounts = relay.lines("tunnel ended")
    carried = sum(int(line.split("to_site_bytes=")[1].split()[0]) for line in accounts)
    assert carried >= 10 * PRODUCT_BYTES
    assert all("sent again" in line and "hub_segment" in line for line in accounts)


def test_a_target_that_the_relay_was_not_given_is_refused_with_the_remedy(world: World) -> None:
    relay = world.relay("relay", "192.0.2.1:7370")
    site = world.site("--via", relay.address, "--via-only")
    sentence = f"{world.hub.address} is no target of this relay; its operator adds it with --to"
    wait_for("the refusal in the site's log", lambda: sentence in site.log())
    assert relay.lines("refused")
    assert not world.hub.do("status")["sessions"]


@pytest.mark.parametrize("at_bytes", [600, 300_000])
def test_a_byte_that_a_relay_flips_is_found_and_nothing_false_is_stored(world: World, at_bytes: int) -> None:
    log_file = world.home / "liar.log"
    with TamperingRelay(world.lab, "relay", flips_at_bytes=at_bytes, log_file=log_file) as liar:
        site = begun(world, "--via", liar.address)
        world.send(6)
        world.complete(site)
        assert liar.flipped
    assert "decrypt" in site.log(), site.log()
    session = world.hub.do("status")["sessions"][0]
    assert session["site"] == "far", "by the direct way, though the relay goes on answering"


def test_a_site_that_stands_still_for_ten_seconds_fills_no_memory_of_the_relay(world: World) -> None:
    relay = world.relay("relay", world.hub.address)
    site = begun(world, "--via", relay.address, "--via-only")
    world.send(60)
    wait_for("some products", lambda: len(site.received()) >= 3)
    os.kill(site.process.pid, signal.SIGSTOP)
    try:
        held = [held_bytes(world.lab, relay)]
        ends_s = time.monotonic() + 10
        while time.monotonic() < ends_s:
            # The length of the stall is what is asked for.
            time.sleep(1)
            held.append(held_bytes(world.lab, relay))
    finally:
        os.kill(site.process.pid, signal.SIGCONT)
    print(f"bytes in the relay, second by second: {held}")
    assert max(held[2:]) <= max(held[:3]) + 2_000_000, "flat once the buffers of the path are full"
    world.complete(site)


def held_bytes(lab: Lab, relay: RelayNode) -> int:
    """The memory of the process, and what its sockets hold in the kernel."""
    status = Path(f"/proc/{relay.process.pid}/status").read_text()
    resident_kb = int(status.split("VmRSS:")[1].split()[0])
    queues = [line.split()[:2] for line in lab.output("relay", ["ss", "-Htn", "state", "established"]).splitlines()]
    return resident_kb * 1024 + sum(int(received) + int(sent) for received, sent in queues)


def test_bad_addresses_of_relays_are_refused_by_one_sentence(world: World) -> None:
    for via, words in (("a:1,a:1", "that is a circle"), ("nowhere", "write HOST:PORT")):
        site = world.site("--via", via)
        assert site.process.wait(timeout=30) == 2
        assert words in site.log()
        assert len(site.log().splitlines()) == 1
        (site.directory / "site.log").unlink()
