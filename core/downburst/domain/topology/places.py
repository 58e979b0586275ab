"""The places of a topology: the switch of each port, and the resources of the calendar.

The key of a resource (`link west`, `host unl`, a port by its name alone) is also its name in sentences.
"""

from collections.abc import Collection, Iterator

from downburst.domain.topology.topology import Topology


class Places:
    """The elements of one topology by the ports that they have."""

    def __init__(self, topology: Topology, ports: Collection[str]) -> None:
        self._topology = topology
        self._ports = ports
        self._switch_of = {port: switch.name for switch in topology.switches for port in switch.ports}

    def vertex(self, port: str) -> str:
        """The switch of a port, or the port itself if that is one of the hub or of a site."""
        return self._switch_of.get(port, port)

    def closed_with(self, name: str) -> Iterator[str]:
        """The keys of the resources that an element takes with it; a switch takes its links."""
        if name in self._ports:
            yield name
        for host in self._topology.hosts:
            if host.name == name:
                yield host_key(name)
        for link in self._topology.links:
            ends = self.vertex(link.a), self.vertex(link.z)
            if name == link.name or (name in ends and name not in self._ports):
                yield link_key(link.name)


def link_key(name: str) -> str:
    """The key of a link in the calendar."""
    return f"link {name}"


def host_key(name: str) -> str:
    """The key of a host in the calendar."""
    return f"host {name}"
