"""The nodes at which probes run: the hub's own, and those of its senders.

A probe runs at the node that has the site's session. A sender without signs of life, or with another node process
than before, has lost its probes.
"""

from collections.abc import Mapping

from downburst.bus.port import Bus
from downburst.domain.probes import Probe
from downburst.domain.senders import SenderSeen
from downburst.foundation.clock import Clock
from downburst.foundation.errors import NodeAway, PartAway
from downburst.parts.names import SenderPart
from downburst.parts.questions import Answer, Method, Remote, T, answers_of
from downburst_probes.port import ProbeNode

OWN = ""
"""The name of the hub's own node among the senders."""


class ProbeNodes:
    """Selects the node for each probe, by the name of its sender."""

    def __init__(self, own: ProbeNode, bus: Bus, clock: Clock) -> None:
        self._own = own
        self._bus = bus
        self._clock = clock
        self._signs: dict[str, tuple[SenderSeen, float]] = {}
        """By sender, its last sign and the time of it."""
        self._looked_s = clock.monotonic_s()

    def look(self) -> None:
        """To be called often. A process that stalled has heard no sign in that time, which is no silence."""
        now_s = self._clock.monotonic_s()
        if now_s - self._looked_s > SILENT_S / 2:
            self._signs = {name: (sign, now_s) for name, (sign, _) in self._signs.items()}
        self._looked_s = now_s

    def seen(self, sign: SenderSeen) -> bool:
        """Takes a sender's sign of life; True if it changes what can run there."""
        before = self.run_of(sign.sender)
        self._signs[sign.sender] = sign, self._clock.monotonic_s()
        return self.run_of(sign.sender) != before

    def run_of(self, sender: str) -> str | None:
        """The id of a node's present process, empty for the hub's own; None: it does not run."""
        if sender == OWN:
            return "" if self._own.running else None
        sign, at_s = self._signs.get(sender, (None, 0.0))
        if sign is None or not sign.running or self._clock.monotonic_s() - at_s > SILENT_S:
            return None
        return sign.run

    def of(self, sender: str) -> ProbeNode:
        """The node of a sender."""
        return self._own if sender == OWN else _NodeOfSender(self._bus, sender, self)


class _NodeOfSender:
    """The node of a sender, asked over the bus."""

    def __init__(self, bus: Bus, sender: str, nodes: ProbeNodes) -> None:
        self._remote = Remote(bus, SenderPart(sender))
        self._sender = sender
        self._nodes = nodes

    @property
    def running(self) -> bool:
        """True if the sender's node is up and has sites and feeds."""
        return self._nodes.run_of(self._sender) is not None

    async def start_probe(self, probe: Probe) -> None:
        """Starts the present attempt of a probe; raises the reason if the node or the site refuses."""
        await self._ask(ProbeNode.start_probe, probe=probe)

    async def stop_probe(self, name: str, reason: str) -> None:
        """Has an attempt end within a second."""
        await self._ask(ProbeNode.stop_probe, name=name, reason=reason)

    async def _ask(self, method: Method[T], **arguments: object) -> T:
        try:
            return await self._remote.ask(method, **arguments)
        except PartAway as error:
            raise NodeAway(f"the sender {self._sender} does not answer; look at its log, then probe again") from error


def answers_of_probes(node: ProbeNode) -> Mapping[str, Answer]:
    """A sender's answers to the probe service of its hub."""
    return answers_of(node, ProbeNode.start_probe, ProbeNode.stop_probe)


def node_words(sender: str) -> str:
    """A node for people."""
    return f"the sender {sender}" if sender else "the hub's node"


SILENT_S = 1.5
"""Three signs of life in a row are missing."""
