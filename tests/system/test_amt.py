"""Sites whose network carries no multicast receive a leg through an AMT relay: once from the hub, a copy to each."""

import os
import socket
import time
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import median

import pytest

from kit.amt import FEED, Reach, forged, reach, report, request
from kit.busy import needs_quiet_machine
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root]

SITES = ("oslo", "bergen")
RATE_BPS = 40_000_000
PRODUCT_BYTES = 200_000
MEMBERSHIP_S = 2 * 1 + 1
"""Twice the query interval of a second, and the time to answer (RFC 3376, section 8.4)."""
LOOK_S = 0.4


@pytest.fixture(params=[pytest.param(4, marks=pytest.mark.smoke), 6])
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Reach]:
    with reach(tmp_path, *SITES, family=request.param) as scene:
        scene.plan(2, RATE_BPS, family=request.param)
        scene.wait_joined()
        yield scene


def send(scene: Reach, products: int, *, first: int = 0, size: int = PRODUCT_BYTES) -> dict[str, str]:
    """Puts products; returns their digests."""
    put = {}
    for number in range(first, first + products):
        content = os.urandom(size)
        scene.hub.put(FEED, f"product {number}", content)
        put[f"product {number}"] = sha256(content).hexdigest()
    return put


def complete(scene: Reach, put: dict[str, str], *sites: str) -> None:
    """Waits for exactly these products at the sites."""
    for name in sites or SITES:
        received = scene.sites[name].wait_received(len(put), 60)
        assert dict(received.values()) == put, name


def test_the_hub_sends_once_and_the_relay_a_copy_through_each_tunnel(scene: Reach) -> None:
    from_hub, to_sites = scene.from_hub_bytes(), {site: scene.to_site(site)[1] for site in SITES}
    put = send(scene, 40)
    sent = 40 * PRODUCT_BYTES
    complete(scene, put)
    assert scene.from_hub_bytes() - from_hub < 1.15 * sent, "one copy leaves the hub"
    for site in SITES:
        copied = scene.to_site(site)[1] - to_sites[site]
        assert sent < copied < 1.2 * sent, f"{site} gets one copy"
    assert scene.hub.drained()
    time.sleep(1)
    repair_bytes = scene.repair_bytes()
    scene.needs_whole_wires(max_lag_us=20_000)
    assert repair_bytes < 1_500, "nothing is lost but a datagram at the join"


@pytest.mark.alone
def test_a_leg_of_56_megabits_is_received_without_loss(tmp_path: Path) -> None:
    needs_quiet_machine()
    with reach(tmp_path, "oslo", "bergen", query_seconds=10) as scene:
        scene.plan(2, 56_000_000)
        scene.wait_joined()
        began = time.monotonic()
        put = send(scene, 40, size=1_000_000)
        complete(scene, put)
        rate_bps = 40 * 8_000_000 / (time.monotonic() - began)
        assert scene.hub.drained()
        time.sleep(1)
        repair_bytes = scene.repair_bytes()
        print(f"{rate_bps / 1e6:.1f} Mb/s of products, {repair_bytes} bytes of repair")
        scene.needs_whole_wires(max_lag_us=20_000)
        assert rate_bps > 0.8 * 56e6
        assert repair_bytes < 1_500, "at most a datagram at the join"


@pytest.mark.alone
@pytest.mark.long(45)
def test_copies_for_a_killed_gateway_end_within_the_query_time(tmp_path: Path) -> None:
    with reach(tmp_path, *SITES) as scene:
        scene.plan(2, RATE_BPS)
        scene.wait_joined()
        put: dict[str, str] = {}
        ends_s: list[float] = []
        for round_ in range(3):
            put |= send(scene, 3, first=3 * round_)
            complete(scene, put)
            ends_s.append(killed(scene, "bergen"))
            scene.sites["bergen"].start()
            wait_for("the site on the leg again", partial(joined_again, scene, round_ + 2), 60)
        print(f"copies ended {', '.join(f'{end:.2f}' for end in ends_s)} s after the kill")
        complete(scene, put)
        assert median(ends_s) <= MEMBERSHIP_S + LOOK_S
        for wire in scene.wires.values():
            wire.stop().needs_small_lag(max_lag_us=50_000)


def joined_again(scene: Reach, times: int) -> bool:
    """True once the killed site has joined the leg so many times."""
    return scene.joined("bergen") >= times


def killed(scene: Reach, site: str) -> float:
    """Kills the site; the seconds until its wire is silent. The leg's heads go on in that time."""
    scene.sites[site].kill()
    began = last = time.monotonic()
    packets = scene.to_site(site)[0]
    while time.monotonic() - last < 1.5:
        time.sleep(0.02)
        now = scene.to_site(site)[0]
        if now > packets:
            packets, last = now, time.monotonic()
        assert last - began < 20, "copies go on"
    return last - began


def test_forged_requests_start_no_data_and_are_limited_per_address(tmp_path: Path) -> None:
    """A host sends requests in the name of another one, which has no gateway."""
    with reach(tmp_path, "victim", "attacker") as scene:
        wire = scene.wires["victim"]
        before, copies = queries_at(scene), scene.to_site("victim")
        began = time.monotonic()
        with scene.lab.inside("attacker"), raw_socket() as sender:
            for nonce in range(500):
                relay = scene.wires["attacker"].left_address
                sender.sendto(forged(wire.right_address, relay, request(nonce), port=5_000), (relay, 0))
            # An update whose code is a guess.
            update = b"\x05\x00" + bytes(6) + (7).to_bytes(4, "big") + report("232.77.1.74", scene.lab.address("hub"))
            for port in range(5_000, 5_050):
                sender.sendto(forged(wire.right_address, relay, update, port=port), (relay, 0))
        elapsed = time.monotonic() - began
        wait_for("a query", lambda: queries_at(scene) > before)
        time.sleep(0.5)
        queries = queries_at(scene) - before
        assert 1 <= queries <= 20 * (1 + elapsed) + 1, f"{queries} queries within {elapsed:.1f} s"
        assert not scene.relay.lines("group joined"), "no forged request starts data"
        sent = [now - then for now, then in zip(scene.to_site("victim"), copies, strict=True)]
        assert sent[1] < 500 * (28 + 8) * 3, f"{sent} packets and bytes went to the victim"


def queries_at(scene: Reach) -> int:
    """Datagrams to closed ports of the victim's host: its kernel counts them."""
    names, values = (
        line.split()[1:]
        for line in scene.lab.output("victim", ["cat", "/proc/net/snmp"]).splitlines()
        if line.startswith("Udp:")
    )
    return int(dict(zip(names, values, strict=True))["NoPorts"])


def raw_socket() -> socket.socket:
    """A socket that sends whole IPv4 packets."""
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)


def test_a_relay_that_restarts_is_used_again_and_its_sites_lose_no_product(tmp_path: Path) -> None:
    with reach(tmp_path, *SITES) as scene:
        scene.plan(2, RATE_BPS)
        scene.wait_joined()
        put = send(scene, 5)
        scene.relay.kill()
        put |= send(scene, 5, first=5)
        scene.relay.start()
        put |= send(scene, 5, first=10)
        complete(scene, put)
        wait_for("the group at the relay again", lambda: len(scene.relay.lines("group joined")) >= 2, 60)


def test_without_an_answer_the_site_receives_by_unicast_and_says_why(tmp_path: Path) -> None:
    with reach(tmp_path, "oslo") as scene:
        scene.relay.kill()
        scene.plan(2, RATE_BPS)
        put = send(scene, 3)
        complete(scene, put, "oslo")

        def said() -> bool:
            return any("no AMT relay answers" in (one.get("reason") or "") for one in scene.hub.events_named("leg"))

        wait_for("the reason", said, 60)
