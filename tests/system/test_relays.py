"""Relays between sites and a hub: they die, stall, stand in a row, lie, and refuse; no product is lost or doubled."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.namespaces import Lab
from kit.patience import wait_for
from kit.relay import RelayNode
from kit.relay_world import PRODUCT_BYTES, RelayWorld, relay_world
from kit.tampering import TamperingRelay

pytestmark = [pytest.mark.system, pytest.mark.root]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RelayWorld]:
    with relay_world(tmp_path) as world:
        yield world


def test_a_relay_that_is_killed_in_mid_product_is_left_for_the_direct_way(world: RelayWorld) -> None:
    relay = world.relay("relay", world.hub.address)
    site = world.begun("--via", relay.address)
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


def test_the_second_relay_takes_over_and_a_site_for_relays_only_waits_for_one(world: RelayWorld) -> None:
    relay, second = world.relay("relay", world.hub.address), world.relay("second", world.hub.address)
    site = world.begun("--via", relay.address, "--via", second.address, "--via-only")
    relay.kill()
    world.send(5)
    world.complete(site)
    assert second.lines("tunnel site")
    second.kill()
    wait_for("the reason in the site's log", lambda: f"by the relay {second.address}" in site.log())
    world.send(2)
    second.start()
    world.complete(site)


def test_two_relays_in_a_row_carry_a_session_and_its_data_connections(world: RelayWorld) -> None:
    second = world.relay("second", world.hub.address)
    relay = world.relay("relay", second.address)
    site = world.begun("--via", f"{relay.address},{second.address}", "--via-only")
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


def test_a_target_that_the_relay_was_not_given_is_refused_with_the_remedy(world: RelayWorld) -> None:
    relay = world.relay("relay", "192.0.2.1:7370")
    site = world.site("--via", relay.address, "--via-only")
    sentence = f"{world.hub.address} is no target of this relay; its operator adds it with --to"
    wait_for("the refusal in the site's log", lambda: sentence in site.log())
    assert relay.lines("refused")
    assert not world.hub.do("status")["sessions"]


@pytest.mark.parametrize("at_bytes", [600, 300_000])
def test_a_byte_that_a_relay_flips_is_found_and_nothing_false_is_stored(world: RelayWorld, at_bytes: int) -> None:
    log_file = world.home / "liar.log"
    with TamperingRelay(world.lab, "relay", flips_at_bytes=at_bytes, log_file=log_file) as liar:
        site = world.begun("--via", liar.address)
        world.send(6)
        world.complete(site)
        assert liar.flipped
    assert "decrypt" in site.log(), site.log()
    session = world.hub.do("status")["sessions"][0]
    assert session["site"] == "far", "by the direct way, though the relay goes on answering"


def test_a_site_that_stands_still_for_ten_seconds_fills_no_memory_of_the_relay(world: RelayWorld) -> None:
    relay = world.relay("relay", world.hub.address)
    site = world.begun("--via", relay.address, "--via-only")
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


def test_bad_addresses_of_relays_are_refused_by_one_sentence(world: RelayWorld) -> None:
    for via, words in (("a:1,a:1", "that is a circle"), ("nowhere", "write HOST:PORT")):
        site = world.site("--via", via)
        assert site.process.wait(timeout=30) == 2
        assert words in site.log()
        assert len(site.log().splitlines()) == 1
        (site.directory / "site.log").unlink()
