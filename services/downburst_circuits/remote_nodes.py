"""The nodes of other processes, for the service: the hub's own if the service runs beside it, and senders'."""

from collections.abc import Callable, Mapping, Sequence

from downburst.bus.port import Bus
from downburst.domain.circuits import CircuitProblem, Direction, Lease, RateProbe, ReachProbe, Standing
from downburst.domain.events import NodeChanged
from downburst.foundation.errors import NodeAway, PartAway
from downburst.parts.names import Part, SenderPart
from downburst.parts.questions import Answer, Method, Remote, T, answers_of
from downburst.supervision import keep, side_by_side
from downburst_circuits.node import CircuitNode


class _NodeElsewhere:
    """A node's answers from another process; one that does not answer is away."""

    def __init__(self, bus: Bus, part: Part | SenderPart) -> None:
        self._part = part
        self._remote = Remote(bus, part)

    async def hold_circuits(self, leases: Sequence[Lease]) -> list[Standing]:
        """Sends the whole set of leases; other interfaces under our names are removed."""
        return await self._ask(CircuitNode.hold_circuits, leases=leases)

    async def circuit_up(self, lease: Lease) -> Standing:
        """Builds one circuit, or changes it in place; restored to its old state if a step fails."""
        return await self._ask(CircuitNode.circuit_up, lease=lease)

    async def circuit_down(self, circuit: int) -> list[CircuitProblem]:
        """Removes one circuit; returns the parts that could not be removed."""
        return await self._ask(CircuitNode.circuit_down, circuit=circuit)

    async def probe_reach(self, circuit: int, site: str) -> ReachProbe:
        """Five packets to a site and back."""
        return await self._ask(CircuitNode.probe_reach, circuit=circuit, site=site)

    async def probe_rate(
        self, circuit: int, site: str, direction: Direction, *, rate_bps: int, duration_ms: int
    ) -> RateProbe:
        """A train of packets to or from a site."""
        return await self._ask(
            CircuitNode.probe_rate,
            circuit=circuit,
            site=site,
            direction=direction,
            rate_bps=rate_bps,
            duration_ms=duration_ms,
        )

    async def _ask(self, method: Method[T], **arguments: object) -> T:
        try:
            return await self._remote.ask(method, **arguments)
        except PartAway as error:
            raise NodeAway(f"the {self._part} does not answer the circuit service; it is asked again") from error


class NodeOfSender(_NodeElsewhere):
    """The node of one of the hub's senders."""

    def __init__(self, bus: Bus, sender: str, runs: Callable[[], bool]) -> None:
        super().__init__(bus, SenderPart(sender))
        self._runs = runs

    @property
    def running(self) -> bool:
        """True if the node is up, by the sender's signs of life."""
        return self._runs()


class RemoteNode(_NodeElsewhere):
    """The hub's own node for a service in another process; a hub that does not answer has no node."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus, Part.HUB)
        self._bus = bus
        self.running = False

    async def run(self) -> None:
        """Tracks whether the node runs, without end."""
        await side_by_side(
            keep("circuits.remote-node", self._look, every_s=LOOK_S), keep("circuits.node-changes", self._follow)
        )

    async def _ask(self, method: Method[T], **arguments: object) -> T:
        try:
            return await super()._ask(method, **arguments)
        except NodeAway:
            self.running = False
            raise

    async def _look(self) -> None:
        try:
            self.running = await self._remote.ask(NodeState.is_running)
        except PartAway:
            self.running = False

    async def _follow(self) -> None:
        with self._bus.subscribe(NodeChanged, limit=QUEUE) as events:
            async for event in events:
                if isinstance(event, NodeChanged):
                    self.running = event.running


class NodeState:
    """The hub's report on its node beside the node's own answers."""

    def __init__(self, node: CircuitNode) -> None:
        self._node = node

    async def is_running(self) -> bool:
        """True if the node is up."""
        return self._node.running


def answers_of_node(node: CircuitNode) -> Mapping[str, Answer]:
    """The hub's answers to the service."""
    return {
        **answers_of(NodeState(node), NodeState.is_running),
        **answers_of(
            node,
            CircuitNode.hold_circuits,
            CircuitNode.circuit_up,
            CircuitNode.circuit_down,
            CircuitNode.probe_reach,
            CircuitNode.probe_rate,
        ),
    }


LOOK_S = 2.0
QUEUE = 64
