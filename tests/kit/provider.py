"""The provider of a circuit: a line of a known rate to a host, on which it protects circuits, or polices them."""

import re
from dataclasses import dataclass

from kit.namespaces import Lab, run_to_end


@dataclass(frozen=True)
class Carried:
    """Counters of a line since its creation: carried bytes of Ethernet frames, and dropped packets."""

    circuit_bytes: int
    other_bytes: int
    dropped_of_circuit: int


class Line:
    """The line from the switch to a host, with one queue for the circuit's traffic and one for all other traffic.

    The circuit is that of a tunnel's identifier; without one, every tunnel is a circuit.

    Unprotected, all traffic shares one queue. Protected, the circuit has a queue with its reserved rate and goes
    first, and all other traffic gets the rest.
    """

    def __init__(self, lab: Lab, host: str, *, rate_bps: int, vni: int | None, buffer_bytes: int = 250_000) -> None:
        self._namespace, self._device = lab.line_to(host)
        self._rate_bps, self._vni = rate_bps, vni
        self._tc("qdisc", "replace", root=True, rest=("handle", "1:", "htb", "default", "10"))
        self._class("1:", "1:1", rate_bps, rate_bps)
        self._class("1:1", "1:10", rate_bps, rate_bps, priority=1)
        self._class("1:1", "1:20", 8_000, 8_000)
        for minor in ("10", "20"):
            queue = ("parent", f"1:{minor}", "handle", f"{minor}:", "bfifo", "limit", str(buffer_bytes))
            self._tc("qdisc", "add", rest=queue)

    def protect(self, reserved_bps: int) -> None:
        """Gives the circuit a queue of its own with the rate that it reserved."""
        self.expose()
        rest_bps = self._rate_bps - reserved_bps
        self._class("1:1", "1:10", rest_bps, self._rate_bps, priority=1)
        self._class("1:1", "1:20", reserved_bps, reserved_bps)
        match = ["match", "ip", "protocol", "17", "0xff", "match", "ip", "dport", "4789", "0xffff"]
        if self._vni is not None:
            match += ["match", "u32", f"0x{self._vni << 8:08x}", "0xffffff00", "at", "32"]
        self._tc(
            "filter", "add", rest=("parent", "1:", "protocol", "ip", "prio", "1", "u32", *match, "flowid", "1:20")
        )

    def expose(self) -> None:
        """Puts the circuit into the queue of all other traffic."""
        self._tc("filter", "del", rest=("parent", "1:"))
        self._class("1:1", "1:10", self._rate_bps, self._rate_bps, priority=1)

    def police(self, rate_bps: int, *, frame_bytes: int = 1_464, burst: int = 20) -> None:
        """Drops tunnel traffic to the host beyond a rate, without a queue.

        It counts frames of a probe's size: the kernel's bucket for bytes holds a second of them, too much for that.
        """
        limit = f"limit rate over {rate_bps // (8 * frame_bytes)}/second burst {burst} packets"
        hook = f"type filter hook egress device {self._device} priority 0"
        rules = f"table netdev provider {{ chain police {{ {hook}; udp dport 4789 {limit} drop; }}; }}\n"
        run_to_end(["ip", "netns", "exec", self._namespace, "nft", "-f", "-"], given=rules)

    def stop_policing(self) -> None:
        """Lets everything through again."""
        run_to_end(["ip", "netns", "exec", self._namespace, "nft", "delete", "table", "netdev", "provider"])

    def carried(self) -> Carried:
        """The counters since the creation of the line."""
        told = run_to_end(["tc", "-n", self._namespace, "-s", "class", "show", "dev", self._device])
        found = {match["minor"]: match for match in _CLASS.finditer(told)}
        circuit, other = found["20"], found["10"]
        return Carried(int(circuit["bytes"]), int(other["bytes"]), int(circuit["dropped"]))

    def _class(self, parent: str, name: str, rate_bps: int, ceiling_bps: int, *, priority: int = 0) -> None:
        rates = ("rate", f"{rate_bps}bit", "ceil", f"{ceiling_bps}bit", "burst", "6000", "cburst", "6000")
        turn = ("quantum", "1514", "prio", str(priority))
        self._tc("class", "replace", rest=("parent", parent, "classid", name, "htb", *rates, *turn))

    def _tc(self, what: str, verb: str, *, root: bool = False, rest: tuple[str, ...]) -> None:
        place = ("dev", self._device, *(("root",) if root else ()))
        run_to_end(["tc", "-n", self._namespace, what, verb, *place, *rest])


_CLASS = re.compile(
    r"class htb 1:(?P<minor>\d+) .*?\n\s*Sent (?P<bytes>\d+) bytes \d+ pkt \(dropped (?P<dropped>\d+)", re.DOTALL
)
