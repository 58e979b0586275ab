"""The tags of a path on the wire: at the ends of a circuit, and at nodes of ours between its hops."""

from dataclasses import replace

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitCarriage,
    CircuitDriver,
    CircuitEnd,
    CircuitRequest,
    Lease,
    Port,
    Transit,
    WireTag,
)
from downburst.domain.topology import Domain, Link, Switch, TagKind, TagRange, Topology
from downburst.foundation.errors import NotFound
from downburst_circuits.calendar import Calendar
from downburst_circuits.desk.booking import Desk
from downburst_circuits.desk.circuits import wanted_of, with_place
from downburst_circuits.desk.network import Network
from downburst_circuits.desk.wire import wired
from factories import SOME_TIME

M = 10**6
PORTS = {
    "hub-eth0": Port("hub-eth0", 1000 * M, None, "eth0", "192.0.2.1"),
    "one-eth0": Port("one-eth0", 1000 * M, "one.edu", "eth0", "192.0.2.2"),
    "two-eth0": Port("two-eth0", 1000 * M, "two.edu", "eth0", "192.0.2.3"),
    "far-eth0": Port("far-eth0", 1000 * M, "far.edu", "eth1", "192.0.2.4"),
}
CIRCUIT = Circuit(
    17, CircuitRequest("r"), (CircuitEnd("hub-eth0"), CircuitEnd("far-eth0", "far.edu")), M, M, SOME_TIME, None
)
LOW, MIDDLE, HIGH = (TagRange(TagKind.VNI, first, first + 9) for first in (3021, 3121, 3221))


def network(*tags: TagRange | None, nodes: tuple[str | None, ...] = ("one.edu", "two.edu")) -> Network:
    """A line of three links with two switches that translate."""
    ends = [("hub-eth0", "a-1"), ("b-1", "a-2"), ("b-2", "far-eth0")]
    links = (
        Link(f"hop-{number}", *pair, 1000 * M, 1000 * M, tag)
        for number, (pair, tag) in enumerate(zip(ends, tags, strict=True))
    )
    switches = (
        Switch(name, "d", (f"{name}-1", f"{name}-2"), translates=True, node=node)
        for name, node in zip("ab", nodes, strict=True)
    )
    topology = Topology((Domain("d"),), tuple(switches), tuple(links))
    topology.check(PORTS)
    return Network(topology, PORTS)


def booked(over: Network, circuit: Circuit = CIRCUIT) -> Lease:
    """The lease of a circuit as the calendar places it."""
    calendar = Calendar({name: port.rate_bps for name, port in PORTS.items()})
    over.put_into(calendar)
    found = Desk(calendar, over).book(wanted_of(circuit, PORTS, over), 0, 10)
    return wired(with_place(circuit, found), over)


def test_nodes_between_hops_with_different_tags_join_them() -> None:
    lease = booked(network(LOW, MIDDLE, HIGH))
    assert [hop.tag for hop in lease.circuit.path] == [3021, 3121, 3221]
    assert lease.tags == (WireTag(vni=3021, via="192.0.2.2"), WireTag(vni=3221, via="192.0.2.3"))
    assert lease.transits == (
        Transit(PORTS["one-eth0"], WireTag(vni=3021, via="192.0.2.1"), WireTag(vni=3121, via="192.0.2.3")),
        Transit(PORTS["two-eth0"], WireTag(vni=3121, via="192.0.2.2"), WireTag(vni=3221, via="192.0.2.4")),
    )


def test_one_tag_along_the_path_needs_no_node() -> None:
    lease = booked(network(LOW, LOW, LOW))
    assert (lease.tags, lease.transits) == ((WireTag(vni=3021), WireTag(vni=3021)), ())


def test_a_switch_of_others_translates_by_itself() -> None:
    lease = booked(network(LOW, MIDDLE, HIGH, nodes=(None, None)))
    assert (lease.tags, lease.transits) == ((WireTag(vni=3021), WireTag(vni=3221)), ())


def test_a_tunnel_may_go_on_as_a_tag() -> None:
    vlans = TagRange(TagKind.VLAN, 3021, 3030)
    lease = booked(network(LOW, vlans, vlans, nodes=("one.edu", None)))
    assert lease.tags == (WireTag(vni=3021, via="192.0.2.2"), WireTag(vlan=3021))
    assert [(one.near.vni, one.far.vlan) for one in lease.transits] == [(3021, 3021)]


@pytest.mark.parametrize("tags", [(None, LOW, LOW), (LOW, LOW, None)])
def test_without_tags_at_its_ends_the_nodes_choose(tags: tuple[TagRange | None, ...]) -> None:
    lease = booked(network(*tags))
    assert (lease.tags, lease.transits) == ((), ())


def test_circuits_of_others_and_without_a_path_are_as_before() -> None:
    over = network(LOW, LOW, LOW)
    declared = replace(CIRCUIT, carriage=CircuitCarriage(CircuitDriver.DECLARED))
    assert booked(over, declared).tags == ()
    assert wired(CIRCUIT, over) == Lease(CIRCUIT, (PORTS["hub-eth0"], PORTS["far-eth0"]))


def test_a_node_that_lost_its_port_is_named() -> None:
    over = network(LOW, MIDDLE, HIGH)
    circuit = booked(over).circuit
    without = Network(over.topology, {name: port for name, port in PORTS.items() if port.site != "one.edu"})
    with pytest.raises(NotFound, match="which joins links hop-0 and hop-1, was removed"):
        wired(circuit, without)
