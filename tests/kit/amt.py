"""Sites without multicast: an AMT relay beside a hub's network, and a wire to each site that carries no group."""

import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kit import running
from kit.capabilities import needs, skip
from kit.namespaces import Lab
from kit.node import END_S, HubNode, Prefix, SiteNode, node_binary
from kit.patience import wait_for
from kit.wire import Wire

FEED = "CONDUIT"
LEG = 74
PORT = 2268
SOURCE_SPECIFIC = {4: "232.77.1.74", 6: "ff3e::8000:74"}


@dataclass
class AmtRelay:
    """A ``downburst-node amt-relay`` and its log."""

    log_file: Path
    interface: str = "eth0"
    prefix: Prefix = ()
    arguments: Sequence[str] = ()

    def start(self) -> Self:
        """Starts the process, and waits until it listens."""
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        argv = [node_binary(), "--log-format", "plain", "amt-relay", "--interface", self.interface]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *argv, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        running.note(self.process)
        wait_for("an AMT relay that listens", lambda: self.lines("AMT relay is ready") or self._ended())
        return self

    def lines(self, words: str) -> list[str]:
        """The lines of the log that contain these words."""
        return [line for line in self.log_file.read_text().splitlines() if words in line]

    def kill(self) -> None:
        """Ends the process without warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """Requests the end of the process; returns the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=END_S)

    def _ended(self) -> None:
        assert self.process.poll() is None, self.log_file.read_text()


@dataclass
class Reach:
    """A hub with multicast, a relay in its network, and sites of which each is behind a wire without multicast."""

    lab: Lab
    home: Path
    hub: HubNode
    relay: AmtRelay
    wires: dict[str, Wire]
    sites: dict[str, SiteNode] = field(default_factory=dict)

    def plan(self, version: int, rate_bps: int, *, family: int = 4) -> None:
        """Has the sites receive the feed by a group of one source."""
        self.hub.multicast(
            FEED, version, LEG, rate_bps, [*self.sites], group=SOURCE_SPECIFIC[family], interface="eth0"
        )

    def joined(self, site: str) -> int:
        """How often the site has joined the leg."""
        events = self.hub.events_named("leg")
        return sum((one["leg"], one["site"], one["state"]) == (LEG, site, "joined") for one in events)

    def wait_joined(self, times: int = 1) -> None:
        """Waits until every site has joined the leg so many times."""
        wait_for("all sites on the leg", lambda: all(self.joined(site) >= times for site in self.sites), 60)

    def to_site(self, site: str) -> tuple[int, int]:
        """Packets and bytes that the relay's host has sent over the wire to the site."""
        device = f"/sys/class/net/{self.wires[site].device}/statistics"
        found = self.lab.output("relay", ["cat", f"{device}/tx_packets", f"{device}/tx_bytes"]).split()
        return int(found[0]), int(found[1])

    def needs_whole_wires(self, *, max_lag_us: int) -> None:
        """Skips the running test if a wire lagged, or a queue before it dropped packets: its host gave it no time.

        The wires carry nothing afterwards.
        """
        for site, wire in self.wires.items():
            statistics = f"/sys/class/net/{wire.device}/statistics/tx_dropped"
            dropped = [int(self.lab.output(host, ["cat", statistics])) for host in ("relay", site)]
            report = wire.stop()
            report.needs_small_lag(max_lag_us=max_lag_us)
            if any(dropped):
                skip(f"{dropped} packets found no room in the queues of {site}'s wire: machine too busy to judge")

    def from_hub_bytes(self) -> int:
        """Bytes that have left the hub's host."""
        return int(self.lab.output("hub", ["cat", "/sys/class/net/eth0/statistics/tx_bytes"]))

    def repair_bytes(self) -> int:
        """Bytes of repairs of the leg."""
        legs = [leg for event in self.hub.events_named("traffic") for leg in event["legs"] if leg["leg"] == LEG]
        return sum(int(leg["repair_bytes"]) for leg in legs)


@contextmanager
def reach(
    home: Path, *sites: str, family: int = 4, query_seconds: int = 1, arguments: Sequence[str] = ()
) -> Iterator[Reach]:
    """The scene, with the sites connected and nothing planned."""
    needs("root", "netns", "veth", "bridge", "tun")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "relay", *sites], snooping=True))
        lab.output("relay", ["sysctl", "-qw", "net.ipv4.ip_forward=1"])
        relay = AmtRelay(
            home / "relay.log",
            prefix=lab.command("relay", []),
            arguments=("--query-seconds", str(query_seconds), *arguments),
        )
        hub = HubNode(
            home / "hub", listen=f"{lab.address('hub')}:7370", interface="eth0", prefix=lab.command("hub", [])
        )
        stack.callback(hub.stop)
        hub.start()
        hub.feed(FEED)
        wires = {name: stack.enter_context(Wire(lab, "relay", name)) for name in sites}
        scene = Reach(lab, home, hub, relay, wires)
        stack.callback(relay.stop)
        relay.start()
        for number, name in enumerate(sites):
            near = lead(lab, wires[name], name, number)
            hub.interfaces[name] = f"amt:{wires[name].left_address}" if family == 4 else f"amt:[{near}]:{PORT}"
            site = scene.sites[name] = SiteNode(home / name, hub.address, prefix=lab.command(name, []))
            hub.site(name, {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
            stack.callback(site.stop)
            site.start()
        hub.wait_connected(*sites)
        for site in scene.sites.values():
            site.wait_begun(FEED)
        yield scene


def lead(lab: Lab, wire: Wire, name: str, number: int) -> str:
    """Has the host's only way lead over its wire; returns the IPv6 address of the relay's end."""
    lab.unplug(name)
    lab.output(name, ["ip", "link", "set", "eth0", "down"])
    lab.output(name, ["ip", "route", "add", "default", "via", wire.left_address])
    lab.output("hub", ["ip", "route", "add", f"{wire.right_address}/32", "via", lab.address("relay")])
    near, far = (f"fd78:{number}::{end}" for end in (1, 2))
    for host, address in (("relay", near), (name, far)):
        lab.output(host, ["ip", "address", "add", f"{address}/64", "dev", wire.device, "nodad"])
    return near


def request(nonce: int) -> bytes:
    """A gateway's request for a query of IGMPv3 (RFC 7450, section 5.1.3)."""
    return struct.pack("!BBHI", 3, 0, 0, nonce)


def forged(source: str, destination: str, payload: bytes, *, port: int) -> bytes:
    """A UDP datagram to a relay in an IPv4 packet whose source is somebody else's address; the kernel adds the
    checksum of the header."""
    length = 8 + len(payload)
    udp = struct.pack("!HHHH", port, PORT, length, 0) + payload
    ends = socket.inet_aton(source) + socket.inet_aton(destination)
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0, 64, socket.IPPROTO_UDP, 0) + ends + udp


def report(group: str, source: str) -> bytes:
    """A report of IGMPv3 that includes a source of a group (RFC 3376, section 4.2)."""
    record = b"\x01\x00\x00\x01" + socket.inet_aton(group) + socket.inet_aton(source)
    body = b"\x22\x00" + bytes(4) + b"\x00\x01" + record
    body = body[:2] + checksum(body) + body[4:]
    head = b"\x46\x00" + (24 + len(body)).to_bytes(2, "big") + bytes(4) + b"\x01\x02" + bytes(2)
    head += socket.inet_aton("154.7.1.2") + socket.inet_aton("224.0.0.22") + b"\x94\x04\x00\x00"
    return head[:10] + checksum(head) + head[12:] + body


def checksum(octets: bytes) -> bytes:
    """The Internet checksum (RFC 1071)."""
    total = sum(int.from_bytes(octets[at : at + 2], "big") for at in range(0, len(octets), 2))
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return (~total & 0xFFFF).to_bytes(2, "big")
