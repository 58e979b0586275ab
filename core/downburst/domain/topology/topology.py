"""A topology as a whole: its elements, and the check that they fit together and to the ports of circuits."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from downburst.domain.circuits import Port
from downburst.domain.topology.elements import Domain, Host, Link, Maintenance, Switch, TagKind
from downburst.domain.topology.foreign import check_foreign


@dataclass(frozen=True, slots=True)
class Topology:
    """All elements, each kind by name."""

    domains: tuple[Domain, ...] = ()
    switches: tuple[Switch, ...] = ()
    links: tuple[Link, ...] = ()
    hosts: tuple[Host, ...] = ()
    maintenance: tuple[Maintenance, ...] = ()

    def check(self, ports: Mapping[str, Port]) -> None:
        """Raises `ValueError` with a sentence if elements contradict each other or the ports of circuits."""
        self._check_names(ports)
        check_foreign(self, ports)
        self._check_switches(ports)
        self._check_links(ports)
        self._check_hosts(ports)
        known = {*ports, *(one.name for one in self.switches), *(one.name for one in self.links)}
        known |= {one.name for one in self.hosts}
        for window in self.maintenance:
            for name in window.of:
                _known(f"maintenance {window.name} is of {name}", known, name, "link, switch, host or port")

    @property
    def foreign_ports(self) -> frozenset[str]:
        """The ports of circuits on machines of other networks."""
        return frozenset(port for domain in self.domains for port in domain.ports)

    def users(self, port: str) -> list[str]:
        """The elements that name a port of circuits, in words."""
        return [
            *(f"domain {domain.name}" for domain in self.domains if port in domain.ports),
            *(f"link {link.name}" for link in self.links if port in (link.a, link.z)),
            *(f"host {host.name}" for host in self.hosts if port in host.ports),
            *(f"maintenance {window.name}" for window in self.maintenance if port in window.of),
        ]

    def difference(self, wanted: "Topology") -> list[str]:
        """The changes from this topology to another one, a sentence each."""
        changes = []
        for kind, word in WORDS.items():
            before = {one.name: one for one in getattr(self, kind)}
            after = {one.name: one for one in getattr(wanted, kind)}
            changes += [f"add {word} {name}" for name in after if name not in before]
            changes += [f"change {word} {name}" for name in after if before.get(name, after[name]) != after[name]]
            changes += [f"remove {word} {name}" for name in before if name not in after]
        return changes

    def _check_names(self, ports: Mapping[str, Port]) -> None:
        """One name, one thing, so that paths and windows of maintenance can name any of them."""
        elements = [one.name for one in self.switches] + [one.name for one in self.links]
        elements += [one.name for one in self.hosts]
        names = [*ports, *elements, *(port for one in self.switches for port in one.ports)]
        named = (names, [one.name for one in self.domains], [one.name for one in self.maintenance])
        for several in named:
            twice = next((name for name, count in Counter(several).items() if count > 1), None)
            if twice is not None:
                raise ValueError(f"{twice} names two things; ports, switches, links and hosts have a name each")

    def _check_switches(self, ports: Mapping[str, Port]) -> None:
        known = {one.name for one in self.domains}
        for switch in self.switches:
            _known(f"switch {switch.name} is in domain {switch.domain}", known, switch.domain, "domain")
            if switch.node is not None:
                _check_node(switch, [port for port in ports.values() if port.site == switch.node])

    def _check_links(self, ports: Mapping[str, Port]) -> None:
        of_switches = {port: switch.name for switch in self.switches for port in switch.ports}
        used: dict[str, str] = {}
        for link in self.links:
            for port in (link.a, link.z):
                _known(f"link {link.name} ends at {port}", {*ports, *of_switches}, port, "port")
                if port in used:
                    raise ValueError(f"port {port} has two links, {used[port]} and {link.name}; a port has one")
                used[port] = link.name
            if not {link.a, link.z} & self.foreign_ports:
                _check_tags(link, ports.get(link.a))
                _check_tags(link, ports.get(link.z))
            if link.a in of_switches and of_switches[link.a] == of_switches.get(link.z):
                raise ValueError(f"link {link.name} leads from switch {of_switches[link.a]} to itself")

    def _check_hosts(self, ports: Mapping[str, Port]) -> None:
        used: dict[str, str] = {}
        for host in self.hosts:
            for port in host.ports:
                _known(f"host {host.name} has port {port}", set(ports), port, "port of the hub or a site")
                if port in used:
                    raise ValueError(f"port {port} is of two hosts, {used[port]} and {host.name}; name it once")
                used[port] = host.name
            owners = {ports[port].host for port in host.ports}
            if len(owners) > 1:
                raise ValueError(
                    f"host {host.name} has ports of {' and '.join(sorted(owners))}; a host has one owner"
                )


def _known(said: str, known: set[str], name: str, kind: str) -> None:
    if name not in known:
        raise ValueError(f"{said}, and there is no {kind} of that name; add it, or correct the name")


def _check_node(switch: Switch, ports: list[Port]) -> None:
    """A node between two hops has one port, with the interface and the address that its tunnels need."""
    if [bool(port.interface and port.underlay) for port in ports] != [True]:
        names = ", ".join(port.name for port in ports) or "none"
        raise ValueError(
            f"switch {switch.name} has the node of {switch.node}, which needs exactly one port, with an interface "
            f"and an underlay address; its ports are: {names}"
        )


def _check_tags(link: Link, port: Port | None) -> None:
    if port is None or port.first_vlan is None or link.tags is None:
        return
    if link.tags.kind is TagKind.VNI:
        raise ValueError(f"link {link.name} has VNIs and its port {port.name} has VLANs; give both the same kind")


WORDS = {
    "domains": "domain",
    "switches": "switch",
    "links": "link",
    "hosts": "host",
    "maintenance": "maintenance",
}
"""The word for an element of each kind."""
