"""Transports that the product does not use, each with the reason found on this host."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AbsentTransport:
    """A transport that is not considered."""

    name: str
    reason: str


def absent_transports(root: Path = Path("/")) -> tuple[AbsentTransport, ...]:
    """RDMA, 100G Ethernet and MPTCP with the reasons, by the files of this host's kernel below `root`."""
    return (
        AbsentTransport("rdma", _rdma(root / "sys/class/infiniband")),
        AbsentTransport("100g", _fast_ethernet(root / "sys/class/net")),
        AbsentTransport("mptcp", _mptcp(root / "proc/sys/net/mptcp/enabled")),
    )


def _rdma(devices: Path) -> str:
    try:
        found = sorted(device.name for device in devices.iterdir())
    except OSError:
        found = []
    if not found:
        return f"this host has no RDMA device ({devices} lists none)"
    return (
        f"this host has {', '.join(found[:MOST_NAMED])}, but sites are reached over routed networks, and RoCE needs "
        "Ethernet without loss on the whole path"
    )


def _fast_ethernet(interfaces: Path) -> str:
    speeds = {}
    for interface in sorted(interfaces.iterdir()) if interfaces.is_dir() else ():
        # Virtual interfaces and those without a link have no speed, or a negative one.
        with suppress(OSError, ValueError):
            speeds[interface.name] = int((interface / "speed").read_text())
    known = {name: speed for name, speed in speeds.items() if speed > 0}
    if not known:
        return "no network card of this host reports its speed"
    name, speed = max(known.items(), key=lambda one: one[1])
    if speed < HUNDRED_GIGABITS:
        return f"the fastest network card of this host is {name} with {speed / 1000:g} Gb/s"
    return (
        f"{name} of this host has {speed / 1000:g} Gb/s, which every transport uses as it is: a port's rate is a "
        "figure of the plan, and no transport of its own"
    )


def _mptcp(enabled: Path) -> str:
    try:
        value = enabled.read_text().strip()
    except OSError:
        return "the kernel of this host has no MPTCP (it has no net.mptcp.enabled)"
    state = "has MPTCP" if value == "1" else "has MPTCP, but it is off"
    return (
        f"the kernel of this host {state} (net.mptcp.enabled={value}), and the product has no use for it: a plan "
        "chooses one path for each leg, and data connections fill it"
    )


HUNDRED_GIGABITS = 100_000
"""Mb/s, as in `/sys/class/net/*/speed`."""
MOST_NAMED = 8
