"""Ports of circuits on machines of other networks: the checks that hand-over to them can work.

Such a port is the place where another network takes frames over: by its name for that place (STP), its tags, and the
address at which its tunnels end. A circuit of ours ends there by an order at that network, or passes from one such
port to another one over our nodes.
"""

from collections.abc import Mapping
from typing import Protocol

from downburst.domain.circuits import Port
from downburst.domain.topology.elements import Domain, Link, Switch, TagKind, TagRange


class Elements(Protocol):
    """The elements of a topology that hand-over needs."""

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The networks."""

    @property
    def switches(self) -> tuple[Switch, ...]:
        """The switches."""

    @property
    def links(self) -> tuple[Link, ...]:
        """The lines between ports."""


def check_foreign(elements: Elements, ports: Mapping[str, Port]) -> None:
    """Raises `ValueError` with a sentence if a port can't be another network's, or tags can't be told apart."""
    owners: dict[str, str] = {}
    for domain in elements.domains:
        for name in domain.ports:
            _check_port(domain, name, ports)
            if name in owners:
                raise ValueError(f"port {name} is of two domains, {owners[name]} and {domain.name}; name it once")
            owners[name] = domain.name
    for switch in elements.switches:
        if switch.node is not None:
            _check_gate(switch, [link for link in elements.links if {link.a, link.z} & {*switch.ports}], owners)


def _check_port(domain: Domain, name: str, ports: Mapping[str, Port]) -> None:
    port = ports.get(name)
    if port is None:
        raise ValueError(f"domain {domain.name} has port {name}, and there is no port of that name; add it")
    if port.site is not None or port.sender is not None or port.interface:
        raise ValueError(
            f"domain {domain.name} has port {name}, which is on {port.host} with the interface "
            f"{port.interface or 'none'}; a port of another network has no site, no sender and no interface"
        )


def _check_gate(switch: Switch, links: list[Link], owners: Mapping[str, str]) -> None:
    """A node that joins a hop of another network to ours has both tunnels, and one host has one tunnel of a VNI."""
    for link in links:
        foreign = next((end for end in (link.a, link.z) if end in owners), None)
        if foreign is None:
            continue
        for other in links:
            if other is not link and _overlap(link.tags, other.tags):
                raise ValueError(
                    f"links {link.name} and {other.name} at switch {switch.name} have VNIs in common, and its node "
                    f"can't join two hops with one VNI for {owners[foreign]}; give them ranges apart"
                )


def _overlap(one: TagRange | None, other: TagRange | None) -> bool:
    if one is None or other is None or TagKind.VLAN in (one.kind, other.kind):
        return False
    lower, higher = sorted((one, other), key=lambda tags: tags.first)
    return lower.last >= higher.first
