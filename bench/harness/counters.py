"""The kernel's counters: processor time of processes, bytes on the interfaces of a lab's hosts."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kit.namespaces import Lab


@dataclass(frozen=True)
class LinkBytes:
    """Bytes of Ethernet frames that an interface received and sent."""

    received: int
    sent: int

    def since(self, earlier: "LinkBytes") -> "LinkBytes":
        """The difference between two readings."""
        return LinkBytes(self.received - earlier.received, self.sent - earlier.sent)


def cpu_s(pids: Iterable[int]) -> float:
    """Processor time of living or unreaped processes so far, user and system, all threads."""
    return sum(parse_cpu_ticks(Path(f"/proc/{pid}/stat").read_text()) for pid in pids) / os.sysconf("SC_CLK_TCK")


def cpu_s_by_thread(pid: int) -> dict[str, float]:
    """Processor time of the living threads of a process, by name; threads of the same name together."""
    spent_s: dict[str, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            name = (task / "comm").read_text().strip()
            ticks = parse_cpu_ticks((task / "stat").read_text())
            spent_s[name] = spent_s.get(name, 0.0) + ticks / os.sysconf("SC_CLK_TCK")
    return spent_s


def link_bytes(lab: Lab) -> dict[str, LinkBytes]:
    """Count the bytes at every host of the lab."""
    return {host: parse_link(lab.output(host, ["cat", "/proc/net/dev"])) for host in lab.hosts}


def moved(later: dict[str, LinkBytes], earlier: dict[str, LinkBytes]) -> dict[str, LinkBytes]:
    """The difference between two readings, host by host."""
    return {host: count.since(earlier[host]) for host, count in later.items()}


def sent_by(pid: int) -> int:
    """Bytes that the network namespace of a living process has sent by `eth0`."""
    return parse_link(Path(f"/proc/{pid}/net/dev").read_text()).sent


def overruns(pid: int) -> int:
    """Datagrams dropped because a socket's buffer was full, in the network namespace of a living process."""
    return parse_overruns(Path(f"/proc/{pid}/net/snmp").read_text())


def parse_overruns(snmp: str) -> int:
    """Read `Udp: ... RcvbufErrors ...` of /proc/net/snmp, a line of names above a line of figures."""
    names, figures = (line.split() for line in snmp.splitlines() if line.startswith("Udp:"))
    return int(figures[names.index("RcvbufErrors")])


def parse_cpu_ticks(stat: str) -> int:
    """Sum utime and stime of a line of /proc/PID/stat, whose second field may hold spaces and brackets."""
    after_name: Sequence[str] = stat.rpartition(")")[2].split()
    return int(after_name[11]) + int(after_name[12])


def parse_link(net_dev: str, *, interface: str = "eth0") -> LinkBytes:
    """Read the line of an interface in /proc/net/dev."""
    for line in net_dev.splitlines():
        name, colon, counts = line.partition(":")
        if colon and name.strip() == interface:
            fields = counts.split()
            return LinkBytes(received=int(fields[0]), sent=int(fields[8]))
    raise ValueError(f"no interface '{interface}' in this /proc/net/dev")
