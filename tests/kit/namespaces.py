"""A lab of hosts: network namespaces on one bridge, which has a namespace of its own.

Nothing is made in the machine's own namespace, so its interfaces, rules and routes are never touched, and rules that
filter bridged traffic there (a Docker engine's, for example) do not reach the lab. Names carry the process id of the
test run; a lab is deleted by name at the end, at exit, and by the next run if the process was killed.
"""

import atexit
import ctypes
import json
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Lab:
    """Hosts with one interface each (`eth0`, 10.77.0.x, fd77::x) on a common bridge; multicast goes to every host.

    With `snooping`, the bridge queries for members of a group (IGMPv3, MLDv2) and forwards it only to them. A leave
    takes effect immediately, as on a switch with one host per port (fast leave).

    With `segments`, every packet crosses the links alone: loss, rate and buffer act on frames, as on a cable.
    Without, bundles of up to 64 KB stay whole, as with offloading interfaces, and loss and rate act on bundles.
    """

    def __init__(self, hosts: Sequence[str], *, segments: bool = True, snooping: bool = False) -> None:
        self.hosts = tuple(hosts)
        self.segments = segments
        self.snooping = snooping
        self.wires = 0
        self._prefix = f"db{os.getpid()}x{secrets.token_hex(2)}"
        self._switch = f"{self._prefix}-switch"

    def __enter__(self) -> Self:
        sweep_abandoned_labs()
        atexit.register(self.close)
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all processes of the lab and delete it; may be called again."""
        atexit.unregister(self.close)
        delete_namespaces(name for name in namespaces() if name.startswith(f"{self._prefix}-"))

    def namespace(self, host: str) -> str:
        """Name of the host's network namespace."""
        if host not in self.hosts:
            raise ValueError(f"no host '{host}' in this lab; it has {', '.join(self.hosts)}")
        return f"{self._prefix}-{host}"

    def address(self, host: str) -> str:
        """IPv4 address of the host's `eth0`."""
        return f"10.77.0.{self.hosts.index(host) + 1}"

    def address6(self, host: str) -> str:
        """IPv6 address of the host's `eth0`."""
        return f"fd77::{self.hosts.index(host) + 1}"

    def command(self, host: str, argv: Sequence[str]) -> list[str]:
        """Command line that runs argv inside the host; the process is argv itself, not a wrapper."""
        return ["ip", "netns", "exec", self.namespace(host), *argv]

    def run(self, host: str, argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start argv inside the host, with the options of Popen."""
        return subprocess.Popen(self.command(host, argv), text=True, **options)

    @contextmanager
    def inside(self, host: str) -> Iterator[None]:
        """The calling thread is in the host during a block: sockets that it opens belong there."""
        with Path("/proc/thread-self/ns/net").open() as home, (_NAMESPACES / self.namespace(host)).open() as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def output(self, host: str, argv: Sequence[str], *, given: str | None = None, timeout_s: float = 60) -> str:
        """Run argv inside the host to its end and return its output."""
        return run_to_end(self.command(host, argv), given=given, timeout_s=timeout_s)

    def loss(self, host: str, percent: float, *, protocols: Sequence[str] = ("udp",)) -> None:
        """Drop this share of the packets that reach the host, at random; 0 removes the loss."""
        below = round(percent * 1000)
        protocol_set = ", ".join(protocols)
        rule = (
            f"meta l4proto {{ {protocol_set} }} numgen random mod 100000 <= {below - 1} counter drop;"
            if below
            else ""
        )
        chain = f"chain input {{ type filter hook input priority -300; {rule} }};"
        rules = f"table inet lab_loss {{}}\ndelete table inet lab_loss\ntable inet lab_loss {{ {chain} }}\n"
        self.output(host, ["nft", "-f", "-"], given=rules)

    def lost_packets(self, host: str) -> int:
        """Count the packets that `loss` has dropped at the host since it was set."""
        listed = json.loads(self.output(host, ["nft", "-j", "list", "table", "inet", "lab_loss"]))
        rules = [entry["rule"]["expr"] for entry in listed["nftables"] if "rule" in entry]
        return sum(part["counter"]["packets"] for rule in rules for part in rule if "counter" in part)

    def rate(
        self, host: str, *, down_bps: int | None = None, up_bps: int | None = None, buffer_bytes: int = 250_000
    ) -> None:
        """Limit incoming (down) and outgoing (up) traffic of the host, in Ethernet-frame bits per second."""
        _limit(self._switch, self._port(host), down_bps, buffer_bytes)
        _limit(self.namespace(host), "eth0", up_bps, buffer_bytes)

    def share(self, host: str, others: Sequence[str], *, up_bps: int, buffer_bytes: int = 250_000) -> None:
        """Limit the host's sending rate, in Ethernet-frame bits per second, with a fair share for each other host.

        In one queue, connections compete for their shares; here, the others get the part that one leaves unused.
        """
        space = self.namespace(host)
        _limit(space, "eth0", up_bps, buffer_bytes)

        def add(what: str, *arguments: str) -> None:
            run_to_end(["tc", "-n", space, what, "add", "dev", "eth0", *arguments])

        limits = ("ceil", f"{up_bps}bit", "burst", "3200", "quantum", "1514")
        add("class", "parent", "1:", "classid", "1:1", "htb", "rate", f"{up_bps}bit", *limits)
        for number, other in enumerate(others, start=0x20):
            own = f"1:{number:x}"
            add("class", "parent", "1:1", "classid", own, "htb", "rate", f"{up_bps // len(others)}bit", *limits)
            add("qdisc", "parent", own, "bfifo", "limit", str(buffer_bytes))
            match = ("u32", "match", "ip", "dst", f"{self.address(other)}/32", "flowid", own)
            add("filter", "parent", "1:", "protocol", "ip", "prio", "1", *match)

    def line_to(self, host: str) -> tuple[str, str]:
        """Namespace and interface through which the switch sends to the host, for the simulated provider."""
        return self._switch, self._port(host)

    def unplug(self, host: str) -> None:
        """Unplug the host's cable from the switch; packets in transit are lost, and neither side is notified."""
        _ip("-n", self._switch, "link", "set", self._port(host), "nomaster")

    def plug(self, host: str) -> None:
        """Plug the cable in again."""
        _ip("-n", self._switch, "link", "set", self._port(host), "master", "br0")

    def _build(self) -> None:
        _ip("netns", "add", self._switch)
        # A bridge floods every group until the answers to its first query are due.
        soon = ("mcast_query_response_interval", "10")
        asks = (
            "mcast_igmp_version",
            "3",
            "mcast_mld_version",
            "2",
            "mcast_query_use_ifaddr",
            "1",
        )
        groups = ("mcast_snooping", "1", *soon, *asks) if self.snooping else ("mcast_snooping", "0")
        _ip("-n", self._switch, "link", "add", "br0", "type", "bridge", "stp_state", "0", *groups)
        _ip("-n", self._switch, "address", "add", "10.77.0.254/24", "dev", "br0")
        if self.snooping:
            _ip("-n", self._switch, "link", "set", "br0", "type", "bridge", "mcast_querier", "1")
        _ip("-n", self._switch, "link", "set", "br0", "up")
        for host in self.hosts:
            self._attach(host)

    def _attach(self, host: str) -> None:
        inside, port = self.namespace(host), self._port(host)
        _ip("netns", "add", inside)
        veth = ("type", "veth", "peer", "name", port, "netns", self._switch)
        _ip("-n", inside, "link", "add", "eth0", *veth)
        one_segment = ("gso_max_segs", "1") if self.segments else ()
        _ip("-n", inside, "link", "set", "eth0", *one_segment, "up")
        _ip("-n", self._switch, "link", "set", port, *one_segment, "master", "br0", "up")
        if self.snooping:
            _ip("-n", self._switch, "link", "set", port, "type", "bridge_slave", "mcast_fast_leave", "on")
        _ip("-n", inside, "link", "set", "lo", "up")
        _ip("-n", inside, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
        _ip("-n", inside, "address", "add", f"{self.address6(host)}/64", "dev", "eth0", "nodad")
        _ip("-n", inside, "route", "add", "224.0.0.0/4", "dev", "eth0")

    def _port(self, host: str) -> str:
        return f"port{self.hosts.index(host)}"


def namespaces() -> list[str]:
    """Names of all network namespaces of the machine."""
    return sorted(path.name for path in _NAMESPACES.iterdir()) if _NAMESPACES.is_dir() else []


def sweep_abandoned_labs() -> None:
    """Delete labs whose test run is dead."""
    delete_namespaces(name for name in namespaces() if _is_abandoned(name))


def delete_namespaces(names: Iterable[str]) -> None:
    """Kill every process inside the namespaces and delete them."""
    for name in list(names):
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
        for pid in pids.stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def run_to_end(argv: Sequence[str], *, given: str | None = None, timeout_s: float = 60) -> str:
    """The output of a command; a failed command raises an error with its reason."""
    done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"'{' '.join(argv)}' ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _is_abandoned(name: str) -> bool:
    match = _LAB_NAME.match(name)
    return bool(match) and not Path(f"/proc/{match[1]}").exists() if match else False


def _limit(namespace: str, device: str, rate_bps: int | None, buffer_bytes: int) -> None:
    subprocess.run(["tc", "-n", namespace, "qdisc", "del", "dev", device, "root"], capture_output=True, check=False)
    if rate_bps is None:
        return
    tc = ("tc", "-n", namespace)
    rate = ("rate", f"{rate_bps}bit", "ceil", f"{rate_bps}bit", "burst", "3200", "quantum", "1514")
    run_to_end([*tc, "qdisc", "add", "dev", device, "root", "handle", "1:", "htb", "default", "10"])
    run_to_end([*tc, "class", "add", "dev", device, "parent", "1:", "classid", "1:10", "htb", *rate])
    run_to_end(
        [*tc, "qdisc", "add", "dev", device, "parent", "1:10", "handle", "10:", "bfifo", "limit", str(buffer_bytes)]
    )


def _ip(*arguments: str) -> str:
    return run_to_end(["ip", *arguments])


def _enter(namespace: int) -> None:
    """`os.setns` came with Python 3.12."""
    if _LIBC.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "a network namespace can't be entered")


_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x4000_0000
_NAMESPACES = Path("/run/netns")
_LAB_NAME = re.compile(r"^db(\d+)x[0-9a-z]+(-.+)?$")
