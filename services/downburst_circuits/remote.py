"""Circuits in a separate process: the api sends requests to the service there, and the service to the hub's node."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from downburst.bus.port import Bus
from downburst.domain.circuits import (
    Circuit,
    CircuitAnswer,
    CircuitChange,
    CircuitProblem,
    CircuitState,
    Direction,
    Lease,
    Port,
    RateProbe,
    ReachProbe,
    Standing,
)
from downburst.domain.events import NodeChanged
from downburst.domain.topology import Topology
from downburst.domain.topology.questions import (
    RateAnswer,
    RateQuestion,
    TopologyAnswer,
    WindowAnswer,
    WindowQuestion,
)
from downburst.foundation.errors import NodeAway, PartAway
from downburst.parts.names import Part
from downburst.parts.questions import Answer, Method, Remote, T, answers_of
from downburst.supervision import keep, side_by_side
from downburst_circuits.node import CircuitNode
from downburst_circuits.questions import DeskService
from downburst_circuits.service import CircuitService


class RemoteCircuits:
    """`CircuitService` for the api of a hub that leaves circuits to another process."""

    def __init__(self, bus: Bus) -> None:
        self._service = Remote(bus, Part.CIRCUITS)
        self.desk = RemoteDesk(self._service)

    async def request(self, wanted: Circuit, hold_s: float | None = None, *, dry_run: bool = False) -> CircuitAnswer:
        """Reserves a circuit, or holds it until a commit; the same request again gets the first circuit."""
        return await self._service.ask(CircuitService.request, wanted=wanted, hold_s=hold_s, dry_run=dry_run)

    async def commit(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Makes a held circuit a reservation."""
        return await self._service.ask(CircuitService.commit, number=number, by=by, dry_run=dry_run)

    async def create_path(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Has the path of a waiting circuit set up."""
        return await self._service.ask(CircuitService.create_path, number=number, by=by, dry_run=dry_run)

    async def tear_down_path(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Removes the path of a circuit, which waits afterwards."""
        return await self._service.ask(CircuitService.tear_down_path, number=number, by=by, dry_run=dry_run)

    async def override(
        self, number: int, state: CircuitState | None, reason: str = "", *, by: str, dry_run: bool = False
    ) -> CircuitAnswer:
        """Shows a circuit as active or down whatever its probes say; None gives it back to them."""
        return await self._service.ask(
            CircuitService.override, number=number, state=state, reason=reason, by=by, dry_run=dry_run
        )

    async def modify(self, number: int, change: CircuitChange, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Changes a circuit, all or nothing."""
        return await self._service.ask(CircuitService.modify, number=number, change=change, by=by, dry_run=dry_run)

    async def cancel(self, number: int, *, by: str, dry_run: bool = False) -> CircuitAnswer:
        """Releases a circuit."""
        return await self._service.ask(CircuitService.cancel, number=number, by=by, dry_run=dry_run)

    async def clone(
        self, number: int, *, request_id: str, begin: datetime | None, by: str, dry_run: bool = False
    ) -> CircuitAnswer:
        """Reserves another circuit with the same properties."""
        return await self._service.ask(
            CircuitService.clone, number=number, request_id=request_id, begin=begin, by=by, dry_run=dry_run
        )

    async def measure(self, number: int) -> Circuit:
        """Starts a measurement of a circuit."""
        return await self._service.ask(CircuitService.measure, number=number)

    async def add_port(self, port: Port) -> Port:
        """Creates a port."""
        return await self._service.ask(CircuitService.add_port, port=port)

    async def change_port(self, port: Port) -> Port:
        """Changes a port."""
        return await self._service.ask(CircuitService.change_port, port=port)

    async def remove_port(self, name: str) -> None:
        """Removes a port that no circuit uses."""
        await self._service.ask(CircuitService.remove_port, name=name)


class RemoteDesk:
    """`DeskService` for the same api."""

    def __init__(self, service: Remote) -> None:
        self._service = service

    async def put_topology(self, wanted: Topology, *, dry_run: bool = False) -> TopologyAnswer:
        """Replaces the topology."""
        return await self._service.ask(DeskService.put_topology, wanted=wanted, dry_run=dry_run)

    async def find_window(self, asked: WindowQuestion) -> WindowAnswer:
        """The first window with room for a circuit."""
        return await self._service.ask(DeskService.find_window, asked=asked)

    async def find_rate(self, asked: RateQuestion) -> RateAnswer:
        """The most that is free throughout a window."""
        return await self._service.ask(DeskService.find_rate, asked=asked)


def answers_of_service(service: CircuitService) -> Mapping[str, Answer]:
    """The service's answers to the api."""
    desk = answers_of(service.desk, DeskService.put_topology, DeskService.find_window, DeskService.find_rate)
    return desk | answers_of(
        service,
        CircuitService.request,
        CircuitService.commit,
        CircuitService.create_path,
        CircuitService.tear_down_path,
        CircuitService.override,
        CircuitService.modify,
        CircuitService.cancel,
        CircuitService.clone,
        CircuitService.measure,
        CircuitService.add_port,
        CircuitService.change_port,
        CircuitService.remove_port,
    )


class RemoteNode:
    """The hub's node for a service in another process; a hub that does not answer has no node."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._hub = Remote(bus, Part.HUB)
        self.running = False

    async def run(self) -> None:
        """Tracks whether the node runs, without end."""
        await side_by_side(
            keep("circuits.remote-node", self._look, every_s=LOOK_S), keep("circuits.node-changes", self._follow)
        )

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
            return await self._hub.ask(method, **arguments)
        except PartAway as error:
            self.running = False
            raise NodeAway("the hub does not answer the circuit service; it is asked again") from error

    async def _look(self) -> None:
        try:
            self.running = await self._hub.ask(NodeState.is_running)
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
