"""The hosts at both ends of ordered circuits, and the core between them that a provider's agent configures."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kit.namespaces import Lab, run_to_end

PORTS = {"hub": "100-119", "unl": "120-139"}
"""Port and host, with the VLANs of the port. One namespace holds both accesses of a path: no VLAN may be in two."""
PORT_MBPS = 1_000
INNER = {"hub": "10.99.0.1", "unl": "10.99.0.2"}


class Plane:
    """Hosts `hub` and `unl`, and the core."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def describe(self, file: Path) -> Path:
        """Writes the core's description for a provider's backend."""
        core = {"namespace": self.lab.namespace("core"), "address": self.lab.address("core")}
        file.write_text(json.dumps({**core, "ports": {port: self.lab.address(port) for port in PORTS}}))
        return file

    def paths(self) -> list[str]:
        """Names of the paths that the core has, with the VLANs of both ends in them."""
        links = json.loads(run_to_end(["ip", "-n", self.lab.namespace("core"), "-j", "link", "show"]))
        return sorted(link["ifname"] for link in links if link["ifname"].startswith("path-"))

    def cut(self, path: str) -> None:
        """Removes a path behind the provider's back."""
        run_to_end(["ip", "-n", self.lab.namespace("core"), "link", "del", path])

    @contextmanager
    def access(self, hub_vlan: int, unl_vlan: int) -> Iterator["Access"]:
        """Tagged interfaces at both hosts, with addresses; they are taken away at the end."""
        names = {"hub": f"v{hub_vlan}", "unl": f"v{unl_vlan}"}
        for host, vlan in (("hub", hub_vlan), ("unl", unl_vlan)):
            inside = ("ip", "-n", self.lab.namespace(host))
            ends = ("local", self.lab.address(host), "remote", self.lab.address("core"), "dstport", "4789")
            run_to_end([*inside, "link", "add", names[host], "type", "vxlan", "id", str(vlan), *ends])
            run_to_end([*inside, "address", "add", f"{INNER[host]}/24", "dev", names[host]])
            run_to_end([*inside, "link", "set", names[host], "up"])
        try:
            yield Access(self.lab)
        finally:
            for host, name in names.items():
                run_to_end(["ip", "-n", self.lab.namespace(host), "link", "del", name])


class Access:
    """Both ends of one circuit."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def answers(self) -> bool:
        """True if the other end answers within a second."""
        try:
            self._lab.output("hub", ["ping", "-c", "1", "-W", "1", INNER["unl"]])
        except RuntimeError:
            return False
        return True

    def tcp_mbps(self, seconds: float = 3.0) -> float:
        """Mb/s of payload that one TCP connection brings through, the first half second left out."""
        with self._lab.inside("unl"):
            listening = socket.create_server((INNER["unl"], 5001))
        with listening:
            with self._lab.inside("hub"):
                sending = socket.create_connection((INNER["unl"], 5001), timeout=10)
            taking, _ = listening.accept()
        with sending, taking:
            thread = threading.Thread(target=_send, args=(sending, seconds))
            thread.start()
            rate = _received_mbps(taking)
            thread.join(timeout=30)
        return rate


def _send(to: socket.socket, seconds: float) -> None:
    end_s, piece = time.monotonic() + seconds, bytes(16_384)
    while time.monotonic() < end_s:
        to.sendall(piece)
    to.shutdown(socket.SHUT_WR)


def _received_mbps(taking: socket.socket) -> float:
    began_s, counted_from_s, count = time.monotonic(), None, 0
    while piece := taking.recv(262_144):
        now_s = time.monotonic()
        if counted_from_s is not None:
            count += len(piece)
        elif now_s - began_s >= _SETTLING_S:
            counted_from_s = now_s
    return count * 8 / 1e6 / (time.monotonic() - (counted_from_s or began_s))


_SETTLING_S = 0.5
