"""The nodes at which circuits begin, behind one `CircuitNode`: the hub's own, and those of its senders.

The port of a circuit's near end names the node. A sender is away when its signs of life stop: without reports there
is no evidence that its circuits work.
"""

from collections.abc import Sequence

from downburst.bus.port import Bus
from downburst.domain.circuits import Circuit, CircuitProblem, Direction, Lease, RateProbe, ReachProbe, Standing
from downburst.domain.senders import SenderSeen
from downburst.foundation.clock import Clock
from downburst.foundation.errors import NodeAway
from downburst_circuits.node import CircuitNode
from downburst_circuits.register import Register
from downburst_circuits.remote_nodes import NodeOfSender

OWN = ""
"""The name of the hub's own node among the senders."""


class NearNodes:
    """Selects the node for each circuit."""

    def __init__(self, register: Register, own: CircuitNode, bus: Bus, clock: Clock) -> None:
        self._register = register
        self._own = own
        self._bus = bus
        self._clock = clock
        self._senders: dict[str, CircuitNode] = {}
        self._signs: dict[str, tuple[SenderSeen, float]] = {}
        """By sender, its last sign and the time of it."""
        self._since_s = self._looked_s = clock.monotonic_s()

    @property
    def running(self) -> bool:
        """True if the hub's own node is up."""
        return self._own.running

    def look(self) -> None:
        """To be called often. A process that stalled has heard no sign meanwhile, which is no silence."""
        now_s = self._clock.monotonic_s()
        if now_s - self._looked_s > SILENT_S / 2:
            self._signs = {name: (sign, now_s) for name, (sign, _) in self._signs.items()}
            self._since_s = now_s
        self._looked_s = now_s

    def seen(self, sign: SenderSeen) -> bool:
        """Takes a sender's sign of life; True if its node may not hold the leases: it is new, or was away."""
        before = self._signs.get(sign.sender)
        was_well = before is not None and before[0].run == sign.run and self.runs(sign.sender)
        self._signs[sign.sender] = sign, self._clock.monotonic_s()
        return not was_well

    def runs(self, sender: str) -> bool:
        """True if the node of a sender is up."""
        if sender == OWN:
            return self._own.running
        sign, at_s = self._signs.get(sender, (None, 0.0))
        return sign is not None and sign.running and self._clock.monotonic_s() - at_s <= SILENT_S

    def is_away(self, sender: str) -> bool:
        """True if a sender is known not to run; after a start it has some time for its first sign."""
        has_waited = self._clock.monotonic_s() - self._since_s > SILENT_S
        return sender != OWN and not self.runs(sender) and (sender in self._signs or has_waited)

    def running_ones(self) -> list[str]:
        """The names of the nodes that are up."""
        return [name for name in (OWN, *sorted(self._signs)) if self.runs(name)]

    def near(self, circuit: Circuit) -> str:
        """The name of the node at which a circuit begins; one between two sites is ordered by the hub's own."""
        port = self._register.ports.get(circuit.ends[0].port)
        return OWN if port is None or port.sender is None else port.sender

    def of(self, sender: str) -> CircuitNode:
        """The node of a sender."""
        if sender == OWN:
            return self._own
        return self._senders.setdefault(sender, NodeOfSender(self._bus, sender, lambda: self.runs(sender)))

    async def hold_circuits(self, leases: Sequence[Lease]) -> list[Standing]:
        """Sends each node its whole set of leases."""
        found: list[Standing] = []
        for name in self.running_ones():
            own = [lease for lease in leases if self.near(lease.circuit) == name]
            found += await self.of(name).hold_circuits(own)
        return found

    async def circuit_up(self, lease: Lease) -> Standing:
        """Builds one circuit, or changes it in place; restored to its old state if a step fails."""
        return await self._of(lease.circuit).circuit_up(lease)

    async def circuit_down(self, circuit: int) -> list[CircuitProblem]:
        """Removes one circuit; returns the parts that could not be removed.

        Nothing is asked of a sender that is away: on its return it gets its whole set, and removes all others.
        """
        known = self._register.open.get(circuit)
        if known is not None and self.is_away(self.near(known)):
            return []
        return await self._at(circuit).circuit_down(circuit)

    async def probe_reach(self, circuit: int, site: str) -> ReachProbe:
        """Five packets to a site and back."""
        return await self._at(circuit).probe_reach(circuit, site)

    async def probe_rate(
        self, circuit: int, site: str, direction: Direction, *, rate_bps: int, duration_ms: int
    ) -> RateProbe:
        """A train of packets to or from a site."""
        node = self._at(circuit)
        return await node.probe_rate(circuit, site, direction, rate_bps=rate_bps, duration_ms=duration_ms)

    def _at(self, circuit: int) -> CircuitNode:
        known = self._register.open.get(circuit)
        return self._own if known is None else self._of(known)

    def _of(self, circuit: Circuit) -> CircuitNode:
        sender = self.near(circuit)
        if self.is_away(sender):
            raise NodeAway(f"the sender {sender} does not run; it is asked again")
        return self.of(sender)


SILENT_S = 1.5
"""Three signs in a row are missing: a feed leaves a circuit within two seconds of the loss of its sender."""
