"""AMT against independent programs: our relay with amtgwd, our gateway with amtrelayd.

docs/measuring-systems.md has the directory's layout. The wires to the gateways carry no multicast.
"""

import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kit.amt import FEED, LEG, AmtRelay, Reach, lead
from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for
from kit.peers.found import prepared
from kit.wire import Wire

pytestmark = [pytest.mark.peers, pytest.mark.root]

GROUP, PORT, DATAGRAMS = "232.77.1.9", 5_001, 80
GATEWAYS = ("north", "south")
OWN_TMP = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs own /tmp && exec "$@"', "sh")
"""A second amtgwd on a machine refuses to start: it finds the first one's number in /tmp."""
JOIN_SOURCE = 46
"""MCAST_JOIN_SOURCE_GROUP."""


@contextmanager
def islands() -> Iterator[tuple[Lab, dict[str, Wire]]]:
    """A source and a relay in a network with multicast, and two hosts behind wires without it."""
    needs("netns", "veth", "bridge", "tun")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "relay", *GATEWAYS], snooping=True))
        lab.output("relay", ["sysctl", "-qw", "net.ipv4.ip_forward=1"])
        wires = {name: stack.enter_context(Wire(lab, "relay", name)) for name in GATEWAYS}
        for number, name in enumerate(GATEWAYS):
            lead(lab, wires[name], name, number)
        yield lab, wires


@contextmanager
def program(lab: Lab, host: str, argv: Sequence[object], log: Path) -> Iterator[None]:
    """A foreign program in a host, until the end of the block."""
    with log.open("wb") as output, lab.run(host, list(map(str, argv)), stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.kill()


def member(lab: Lab, host: str, interface: str) -> socket.socket:
    """A socket that has joined the group of one source on an interface of the host."""
    with lab.inside(host):
        joined = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        joined.bind((GROUP, PORT))
        index = socket.if_nametoindex(interface)
        ends = [
            struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(ip)) for ip in (GROUP, lab.address("hub"))
        ]
        joined.setsockopt(socket.IPPROTO_IP, JOIN_SOURCE, struct.pack("@I4x", index) + b"".join(ends))
    joined.settimeout(5)
    return joined


def heard(joined: socket.socket, wanted: int) -> int:
    """The number of different datagrams that arrive within five seconds of silence."""
    numbers: set[bytes] = set()
    while len(numbers) < wanted:
        try:
            numbers.add(joined.recv(2_000)[:4])
        except TimeoutError:
            break
    return len(numbers)


def sent(lab: Lab, count: int, *, first: int = 0) -> None:
    """Numbered datagrams of the hub to the group."""
    with lab.inside("hub"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
        for number in range(first, first + count):
            sender.sendto(number.to_bytes(4, "big") + bytes(1_200), (GROUP, PORT))
            time.sleep(0.005)


def test_our_relay_serves_two_foreign_gateways(tmp_path: Path) -> None:
    (gateway,) = prepared("amt/gateway/amtgwd")
    with islands() as (lab, wires), ExitStack() as stack:
        relay = AmtRelay(tmp_path / "relay.log", prefix=lab.command("relay", []), arguments=("--query-seconds", "2"))
        stack.callback(relay.stop)
        relay.start()
        members = []
        for name in GATEWAYS:
            lab.output(name, ["ip", "tuntap", "add", "amt0", "mode", "tun"])
            lab.output(name, ["ip", "address", "add", "10.99.0.2/24", "dev", "amt0"])
            lab.output(name, ["ip", "link", "set", "amt0", "up"])
            for device in ("all", "amt0"):
                lab.output(name, ["sysctl", "-qw", f"net.ipv4.conf.{device}.rp_filter=0"])
            at = wires[name]
            argv = [*OWN_TMP, gateway, "-d", "-a", at.left_address, "-c", "amt0", "-s", at.right_address]
            stack.enter_context(program(lab, name, argv, tmp_path / f"{name}.log"))
            members.append(stack.enter_context(member(lab, name, "amt0")))
        wait_for("the group at the relay", lambda: relay.lines("group joined"), 60)
        wait_for("both tunnels", lambda: first_of_both(lab, members), 60)
        before = multicast_packets(lab)
        sent(lab, DATAGRAMS, first=1_000)
        assert [heard(one, DATAGRAMS) for one in members] == [DATAGRAMS, DATAGRAMS]
        assert multicast_packets(lab) - before <= DATAGRAMS + 10, "the source sends once"


def first_of_both(lab: Lab, members: Sequence[socket.socket]) -> bool:
    """True once a datagram arrives at both; what is left over is discarded."""
    sent(lab, 1, first=1)
    time.sleep(0.5)
    found = []
    for one in members:
        one.setblocking(False)
        try:
            found.append(bool(one.recv(2_000)))
        except BlockingIOError:
            found.append(False)
        one.settimeout(5)
    return all(found)


def multicast_packets(lab: Lab) -> int:
    """Packets that have left the source's host."""
    return int(lab.output("hub", ["cat", "/sys/class/net/eth0/statistics/tx_packets"]))


def test_our_gateways_are_served_by_a_foreign_relay(tmp_path: Path) -> None:
    (foreign,) = prepared("amtrelayd/src/amtrelayd")
    with islands() as (lab, wires), ExitStack() as stack:
        address = lab.address("relay")
        options = ["-d", "-a", address, "-r", address, "-s", lab.address("hub"), "-c", "eth0"]
        argv = [foreign, *options, "-i", f"DataPort={PORT}", "RelayUrlPort=0"]
        stack.enter_context(program(lab, "relay", argv, tmp_path / "relay.log"))
        hub = HubNode(
            tmp_path / "hub", listen=f"{lab.address('hub')}:7370", interface="eth0", prefix=lab.command("hub", [])
        )
        stack.callback(hub.stop)
        hub.start()
        hub.feed(FEED)
        scene = Reach(lab, tmp_path, hub, AmtRelay(tmp_path / "none"), wires)
        for name in GATEWAYS:
            hub.interfaces[name] = f"amt:{address}"
            site = scene.sites[name] = SiteNode(tmp_path / name, hub.address, prefix=lab.command(name, []))
            hub.site(name, {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
            stack.callback(site.stop)
            site.start()
        hub.wait_connected(*GATEWAYS)
        for site in scene.sites.values():
            site.wait_begun(FEED)
        hub.multicast(FEED, 2, LEG, 10_000_000, GATEWAYS, group=GROUP, port=PORT, interface="eth0")
        scene.wait_joined()
        for number in range(10):
            hub.put(FEED, f"product {number}", bytes(100_000))
        for site in scene.sites.values():
            assert len(site.wait_received(10)) == 10
        assert hub.drained()
