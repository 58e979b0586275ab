"""The lease of a circuit along a path: the tags of its hops as the nodes have them on the wire."""

from itertools import pairwise

from downburst.domain.circuits import (
    Circuit,
    CircuitDriver,
    CircuitEnd,
    CircuitHop,
    CircuitShape,
    Lease,
    Port,
    Transit,
    WireTag,
)
from downburst.domain.topology import TagKind
from downburst.foundation.errors import NotFound
from downburst_circuits.desk.network import Network


def wired(circuit: Circuit, network: Network) -> Lease:
    """The lease of a circuit. The nodes choose its identifiers unless both ends of its one path have tags."""
    ports = tuple(network.ports[end.port] for end in circuit.ends)
    if circuit.carriage.driver is CircuitDriver.NSI:
        return Lease(circuit, ports, _granted(circuit, network))
    is_ours = circuit.carriage.driver is CircuitDriver.LINUX and circuit.shape is CircuitShape.POINT_TO_POINT
    if not (is_ours and circuit.path and all(_has_tag(hop, network) for hop in (circuit.path[0], circuit.path[-1]))):
        return Lease(circuit, ports)
    joints = [
        (joint, before, after)
        for before, after in pairwise(circuit.path)
        if (joint := _joint(before, after, network))
    ]
    near, far = ports
    # Each tunnel ends at the next node of the path.
    stations = [near.underlay, *(joint.underlay for joint, _, _ in joints), far.underlay]
    tags = (
        _tag(circuit.path[0], network, stations[1] if joints else None),
        _tag(circuit.path[-1], network, stations[-2] if joints else None),
    )
    transits = tuple(
        Transit(joint, _tag(before, network, stations[number]), _tag(after, network, stations[number + 2]))
        for number, (joint, before, after) in enumerate(joints)
    )
    return Lease(circuit, ports, tags, transits)


def _granted(circuit: Circuit, network: Network) -> tuple[WireTag, ...]:
    """The tags that a provider granted, as they are on the links to its machines; empty: VLANs of the ports."""
    tags = tuple(_granted_tag(end, network) for end in circuit.ends)
    return tags if any(tag.vni is not None for tag in tags) else ()


def _granted_tag(end: CircuitEnd, network: Network) -> WireTag:
    gate = network.gate(end.port)
    if end.vlan is None or gate is None or gate[0].tags is None or gate[0].tags.kind is TagKind.VLAN:
        return WireTag(vlan=end.vlan)
    return WireTag(vni=end.vlan, via=gate[1].underlay or None)


def _joint(before: CircuitHop, after: CircuitHop, network: Network) -> Port | None:
    """The port of the node that joins two hops; None: no node of ours is between them, or nothing to translate."""
    link = network.link(before.link)
    site = None if link is None else network.node_after(link, forward=before.forward)
    if site is None or not (_has_tag(before, network) and _has_tag(after, network)):
        return None
    if _tag(before, network) == _tag(after, network):
        return None
    found = next((port for port in network.ports.values() if port.site == site), None)
    if found is None:
        raise NotFound(
            f"the port of {site}, which joins links {before.link} and {after.link}, was removed; add it again"
        )
    return found


def _has_tag(hop: CircuitHop, network: Network) -> bool:
    link = network.link(hop.link)
    return hop.tag is not None and link is not None and link.tags is not None


def _tag(hop: CircuitHop, network: Network, via: str | None = None) -> WireTag:
    link = network.link(hop.link)
    if link is not None and link.tags is not None and link.tags.kind is TagKind.VLAN:
        return WireTag(vlan=hop.tag)
    return WireTag(vni=hop.tag, via=via)
