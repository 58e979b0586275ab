"""Circuits that the hub's own nodes make, and those that third parties made before: `linux` and `declared`."""

from dataclasses import replace

from downburst.domain.circuits import STANDING, Circuit, CircuitDriver, CircuitProblem, CircuitState, Standing
from downburst.foundation.errors import Failure
from downburst_circuits.addresses import Network, addresses
from downburst_circuits.node import CircuitNode
from downburst_circuits.providers.port import Broken, Made, Removed
from downburst_circuits.register import Register, Said


class Nodes:
    """The ends at the hub and its sites, or at two sites, by leases of the hub's node."""

    def __init__(self, register: Register, node: CircuitNode, network: Network) -> None:
        self._register = register
        self._node = node
        self._network = network

    async def hold(self, circuit: Circuit) -> None:
        """The calendar holds all of it."""

    async def commit(self, circuit: Circuit) -> None:
        """The calendar has all of it."""

    async def make(self, circuit: Circuit) -> Made | Broken:
        """Sets up both ends; the circuit gets its inner addresses the first time."""
        if circuit.passes:
            return await self._join(circuit)
        if circuit.carriage.driver is CircuitDriver.LINUX and circuit.ends[0].address is None:
            given = self.addresses(circuit)
            said = Said(f"inner addresses {', '.join(given)}")
            kept = await self._register.change(
                circuit.number, lambda now: _with_addresses(now, given), "addressed", said
            )
            circuit = kept or circuit
        return await self.set_up(circuit)

    async def set_up(self, circuit: Circuit) -> Made | Broken:
        """The node's part of a circuit with addresses."""
        standing = await self._node.circuit_up(self._register.lease(circuit))
        if standing.state == "failed":
            return Broken(first_problem(standing))
        # Between two sites, one that is away leaves nothing to probe.
        if len(standing.problems) >= len(circuit.far_sites):
            return Broken(standing.problems[0])
        return Made(standing.took_ms)

    async def _join(self, circuit: Circuit) -> Made | Broken:
        """The hops between two other networks; all nodes on the way are needed, as nobody here has an end."""
        lease = self._register.lease(circuit)
        if not lease.transits:
            return Broken(_NO_JOINT)
        standing = await self._node.circuit_up(lease)
        return Made(standing.took_ms) if standing.state == "up" else Broken(first_problem(standing))

    async def change(self, circuit: Circuit, wanted: Circuit) -> None:
        """Changes both ends in place, or restores them."""
        if circuit.state not in STANDING:
            return
        standing = await self._node.circuit_up(self._register.lease(wanted))
        problem = _refusal(standing, circuit, wanted)
        if problem is None:
            return
        # The node restored all it could; the second request ensures that it has the old lease.
        await self._node.circuit_up(self._register.lease(circuit))
        raise Failure(
            f"circuit {circuit.number} stays as it was: {problem.sentence}",
            step=problem.step,
            hop=problem.hop,
            remedy=problem.remedy,
        )

    async def remove(self, circuit: Circuit) -> Removed | Broken:
        """Removes both ends."""
        left = await self._node.circuit_down(circuit.number)
        return Broken(left[0]) if left else Removed()

    def is_held(self, circuit: Circuit) -> bool:
        """True for a circuit with addresses; one that passes has none, and is held from its making on."""
        return circuit.state in STANDING if circuit.passes else circuit.ends[0].address is not None

    def ended(self, circuit: Circuit) -> Broken | None:  # noqa: ARG002
        """None: the node tells by itself what it lost."""
        return None

    def is_doubted(self, circuit: Circuit) -> bool:  # noqa: ARG002
        """False: as `ended`."""
        return False

    def addresses(self, circuit: Circuit) -> tuple[str, ...]:
        """Inner addresses for a circuit, an address for each end."""
        return addresses(self._network, circuit, self._register.begun.values())


def _refusal(standing: Standing, circuit: Circuit, wanted: Circuit) -> CircuitProblem | None:
    """The reason not to accept a change. An end that is new has to be up; away may be one that was away before."""
    before, after = set(circuit.sites), set(wanted.sites)
    absent = next((problem for problem in standing.problems if problem.site in after - before), None)
    if absent is not None or standing.state == "up":
        return absent
    if standing.state == "partial" and (circuit.state is not CircuitState.ACTIVE or before != after):
        return None
    return next(iter(standing.problems), CircuitProblem("the node could not change it"))


def first_problem(standing: Standing) -> CircuitProblem:
    """The first reason of the node."""
    return next(iter(standing.problems), _NO_WORDS)


def _with_addresses(circuit: Circuit, given: tuple[str, ...]) -> Circuit:
    ends = zip(circuit.ends, given, strict=True)
    return replace(circuit, ends=tuple(replace(end, address=address) for end, address in ends))


_NO_JOINT = CircuitProblem(
    "no node of this hub joins two hops of its path, so nothing leads from one network to the other",
    step="path",
    remedy="name the site whose node translates at a switch on the path: `node` in the topology",
)
_NO_WORDS = CircuitProblem("the node could not set it up and gave no reason", step="node", hop="the hub's node")
