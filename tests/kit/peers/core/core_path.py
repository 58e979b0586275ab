"""Paths in the providers' network: two tagged accesses joined by a bridge, each limited to the granted rate.

A tagged access is a VXLAN between the core and a host, its VNI the granted VLAN: kernels without 802.1Q have those.
It runs in the providers' own Python, beside their programs, and needs the standard library alone. PEER_CORE names a
file in JSON with the core's namespace, its address, and the address of the host behind each port.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Access:
    """A port with a VLAN."""

    port: str
    vlan: int

    @property
    def device(self) -> str:
        return f"v{self.vlan}"


def bring_up(source: Access, dest: Access, rate_mbps: int) -> None:
    """Joins both accesses; what is left of a former path with the same VLANs goes first."""
    take_down(source, dest)
    bridge = _bridge(source, dest)
    _run("ip", "link", "add", bridge, "type", "bridge", "stp_state", "0", "mcast_snooping", "0")
    for access in (source, dest):
        remote = _core()["ports"][access.port]
        tunnel = ("id", str(access.vlan), "local", _core()["address"], "remote", remote, "dstport", "4789")
        _run("ip", "link", "add", access.device, "type", "vxlan", *tunnel)
        _run("ip", "link", "set", access.device, "master", bridge, "up")
    _run("ip", "link", "set", bridge, "up")
    set_rate(source, dest, rate_mbps)


def set_rate(source: Access, dest: Access, rate_mbps: int) -> None:
    """Limits a path that is up, in both directions, in bits of the carried frames."""
    for access in (source, dest):
        limit = ("rate", f"{rate_mbps}mbit", "burst", "64kb", "latency", "50ms")
        _run("tc", "qdisc", "replace", "dev", access.device, "root", "tbf", *limit)


def take_down(source: Access, dest: Access) -> None:
    """Removes a path; one that is not there is no error."""
    for device in (_bridge(source, dest), source.device, dest.device):
        if _is_there(device):
            _run("ip", "link", "del", device)


def is_up(source: Access, dest: Access) -> bool:
    """True if the path is joined."""
    return all(_is_there(device) for device in (_bridge(source, dest), source.device, dest.device))


def _bridge(source: Access, dest: Access) -> str:
    return f"path-{source.vlan}-{dest.vlan}"


def _is_there(device: str) -> bool:
    return subprocess.run(_inside("ip", "link", "show", device), capture_output=True, check=False).returncode == 0


def _run(*argv: str) -> None:
    subprocess.run(_inside(*argv), check=True, capture_output=True)


def _inside(program: str, *arguments: str) -> list[str]:
    return [program, "-n", _core()["namespace"], *arguments]


def _core() -> dict[str, Any]:
    """The description of the core."""
    return json.loads(Path(os.environ["PEER_CORE"]).read_text())
