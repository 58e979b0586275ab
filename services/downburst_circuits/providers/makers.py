"""All makers of circuits of one hub, by the driver of a circuit."""

from collections.abc import Awaitable, Callable, Iterator

from downburst.domain.circuits import Circuit, CircuitDriver
from downburst.settings.circuits import CircuitSettings
from downburst_circuits.node import CircuitNode
from downburst_circuits.providers.agents import Agents
from downburst_circuits.providers.listener import CallbackListener
from downburst_circuits.providers.nodes import Nodes
from downburst_circuits.providers.ordered import Ordered
from downburst_circuits.providers.port import CircuitProvider
from downburst_circuits.register import Register


class Makers:
    """The hub's nodes, and the requesters of NSI providers, which need their `runs`."""

    def __init__(self, nodes: Nodes, ordered: Ordered, agents: Agents, listener: CallbackListener | None) -> None:
        self.agents = agents
        self._listener = listener
        self._by_driver: dict[CircuitDriver, CircuitProvider] = {
            CircuitDriver.LINUX: nodes,
            CircuitDriver.DECLARED: nodes,
            CircuitDriver.NSI: ordered,
        }

    def of(self, circuit: Circuit) -> CircuitProvider:
        """The maker of a circuit."""
        return self._by_driver[circuit.carriage.driver]

    def runs(self) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
        """The tasks by name, to be kept: orders at providers; their callbacks, if an address is set."""
        yield "circuits.providers", self.agents.run
        if self._listener is not None:
            yield "circuits.callbacks", self._listener.run


def makers(register: Register, node: CircuitNode, agents: Agents, settings: CircuitSettings) -> Makers:
    """The makers of a hub with this node."""
    nodes = Nodes(register, node, settings.network)
    listener = None
    if settings.callbacks is not None:
        listener = CallbackListener(settings.callbacks, agents.heard, register.fault)
    return Makers(nodes, Ordered(register, node, nodes, agents), agents, listener)
