"""The topology as a graph: the vertices are switches and ports of the hub or of sites, the edges are links."""

from collections.abc import Mapping
from dataclasses import dataclass

from downburst.domain.circuits import Direction, Port
from downburst.domain.topology import Link, Topology
from downburst.domain.topology.places import Places, host_key, link_key
from downburst.foundation.clock import to_us
from downburst_circuits.calendar import Calendar, Closure


@dataclass(frozen=True, slots=True)
class Hop:
    """A link in the direction in which a path takes it."""

    link: Link
    to: str
    """The vertex at its far end."""
    forward: bool
    """True from the link's end `a` to its end `z`."""

    @property
    def direction(self) -> Direction:
        """The link's direction from the beginning of the path to its end."""
        return Direction.OUT if self.forward else Direction.IN


class Network:
    """The present topology, with an index for searches."""

    def __init__(self, topology: Topology, ports: Mapping[str, Port]) -> None:
        self.topology = topology
        self.ports = ports
        self.foreign = topology.foreign_ports
        """The ports on machines of other networks."""
        self._places = Places(topology, ports)
        self._links = {link.name: link for link in topology.links}
        self._nodes = {switch.name: switch.node for switch in topology.switches if switch.node is not None}
        self._translating = {switch.name for switch in topology.switches if switch.translates}
        self._hosts = {port: host.name for host in topology.hosts for port in host.ports}
        self._hops: dict[str, list[Hop]] = {}
        self.distances: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
        """Distances of all vertices by measure and goal, as far as searches have computed them."""
        for link in topology.links:
            a, z = self._places.vertex(link.a), self._places.vertex(link.z)
            self._hops.setdefault(a, []).append(Hop(link, z, forward=True))
            self._hops.setdefault(z, []).append(Hop(link, a, forward=False))

    def hops(self, vertex: str) -> list[Hop]:
        """The links at a switch or port, seen from there."""
        return self._hops.get(vertex, [])

    def has(self, port: str) -> bool:
        """True if a link ends at the port."""
        return port in self._hops

    def translates(self, vertex: str) -> bool:
        """True if tags may change there."""
        return vertex in self._translating

    def link(self, name: str) -> Link | None:
        """The link of this name."""
        return self._links.get(name)

    def gate(self, port: str) -> tuple[Link, Port] | None:
        """The link from a port to a machine of another network, and the port there; None: none leads to one."""
        for hop in self.hops(port):
            if hop.to in self.foreign:
                return hop.link, self.ports[hop.to]
        return None

    def node_after(self, link: Link, *, forward: bool) -> str | None:
        """The site whose node translates at the far end of a link."""
        return self._nodes.get(self._places.vertex(link.z if forward else link.a))

    def host_of(self, port: str) -> str | None:
        """The host that has a port of circuits, if it is declared."""
        return self._hosts.get(port)

    def passes(self, vertex: str) -> bool:
        """True if a path may lead through a vertex: switches carry what is not theirs, ports don't."""
        return vertex not in self.ports

    def put_into(self, calendar: Calendar) -> None:
        """Gives the calendar the links and hosts, and all resources their windows of maintenance."""
        for link in self.topology.links:
            calendar.capacity(link_key(link.name), link.az_bps, link.za_bps)
        for host in self.topology.hosts:
            calendar.capacity(host_key(host.name), host.nic_bps)
        closures = self.closures()
        for resource in self.resources():
            calendar.close(resource, closures.get(resource, ()))

    def resources(self) -> list[str]:
        """The keys of all links, hosts and ports of circuits."""
        links = [link_key(link.name) for link in self.topology.links]
        return [*links, *(host_key(host.name) for host in self.topology.hosts), *self.ports]

    def closures(self) -> dict[str, list[Closure]]:
        """The windows of maintenance of each resource."""
        found: dict[str, list[Closure]] = {}
        for window in self.topology.maintenance:
            closure = Closure(window.name, to_us(window.begin), to_us(window.end))
            for resource in {key for name in window.of for key in self._places.closed_with(name)}:
                found.setdefault(resource, []).append(closure)
        return found
