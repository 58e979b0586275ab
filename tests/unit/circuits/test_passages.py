"""Circuits that pass from one other network to another one over our nodes, and ends with granted VNIs."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitCarriage,
    CircuitDriver,
    CircuitEnd,
    CircuitProblem,
    CircuitRequest,
    CircuitState,
    Port,
    WireTag,
)
from downburst.domain.topology import Domain, Link, Switch, TagKind, TagRange, Topology
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput
from downburst.ledger import Ledger
from downburst_circuits.desk.network import Network
from downburst_circuits.desk.wire import wired
from downburst_worker.messages.circuit_lines import lease_line
from factories import SOME_TIME
from kit.circuits import M
from unit.circuits.stage import Stage

GATES = (
    Port("gate-a", 1000 * M, underlay="192.0.2.1", first_vlan=100, last_vlan=109, stp="urn:ogf:network:b:gate-a"),
    Port("gate-z", 1000 * M, underlay="192.0.2.9", first_vlan=200, last_vlan=209, stp="urn:ogf:network:b:gate-z"),
)
BORDER = Port("unl-border", 1000 * M, "unl.edu", "eth0", "192.0.2.2")


def vnis(first: int) -> TagRange:
    return TagRange(TagKind.VNI, first, first + 9)


def topology(node: str | None = "unl.edu") -> Topology:
    """Two gates of other networks, joined by one switch."""
    return Topology(
        (Domain("ours"), Domain("theirs", ports=("gate-a", "gate-z"))),
        (Switch("s", "ours", ("s-1", "s-2"), translates=True, node=node),),
        (
            Link("in", "gate-a", "s-1", 1000 * M, 1000 * M, vnis(100)),
            Link("out", "s-2", "gate-z", 1000 * M, 1000 * M, vnis(200)),
        ),
    )


async def opened(ledger: Ledger, clock: FakeClock, declared: Topology | None = None) -> Stage:
    stage = await Stage(ledger, clock).open()
    with ledger.transaction() as tx:
        tx.ports.remove("unl.edu-eth1")
    await stage.register.load()
    for port in (*GATES, BORDER):
        await stage.service.add_port(port)
    await stage.service.desk.put_topology(declared or topology())
    return stage


async def passing(stage: Stage, rate: int = 50) -> Circuit:
    ends = CircuitEnd("gate-a"), CircuitEnd("gate-z")
    wish = replace(stage.wish(rate=rate, back=rate), ends=ends)
    return (await stage.service.request(wish)).circuit


async def test_a_passage_is_made_of_joined_hops_alone(ledger: Ledger, clock: FakeClock) -> None:
    stage = await opened(ledger, clock)
    circuit = await passing(stage)
    assert circuit.passes
    await stage.settle()
    kept = stage.kept(circuit)
    assert (kept.state, [hop.tag for hop in kept.path]) == (CircuitState.ACTIVE, [100, 200])
    assert [end.vlan for end in kept.ends] == [100, 200]
    line = lease_line(stage.node.held[circuit.number])
    assert line["ends"] == []
    (transit,) = line["transits"]
    assert (transit["site"], transit["underlay"]) == ("unl.edu", "192.0.2.2")
    assert transit["near"] == {"vlan": None, "vni": 100, "via": "192.0.2.1"}
    assert transit["far"] == {"vlan": None, "vni": 200, "via": "192.0.2.9"}
    assert not [done for done in stage.node.done if done.startswith(("reach", "rate"))]
    await stage.service.cancel(circuit.number, by="op")
    await stage.settle()
    assert stage.node.held == {}


async def test_a_passage_whose_node_has_lost_it_is_down_until_that_holds_it_again(
    ledger: Ledger, clock: FakeClock
) -> None:
    stage = await opened(ledger, clock)
    circuit = await passing(stage)
    await stage.settle()
    stage.node.held.clear()
    stage.node.refuses[circuit.number] = CircuitProblem("the tunnel is gone", "tunnel", "unl.edu")
    await stage.told(circuit, "down")
    assert stage.state(circuit) is CircuitState.DOWN
    stage.node.refuses.clear()
    await stage.told(circuit, "up")
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_a_passage_outlives_its_hub(ledger: Ledger, clock: FakeClock) -> None:
    stage = await opened(ledger, clock)
    circuit = await passing(stage)
    await stage.settle()
    again = await stage.again()
    await again.settle()
    assert (again.state(circuit), set(again.node.held)) == (CircuitState.ACTIVE, {circuit.number})


async def test_a_way_without_a_node_of_ours_is_told(ledger: Ledger, clock: FakeClock) -> None:
    stage = await opened(ledger, clock, topology(node=None))
    circuit = await passing(stage)
    await stage.settle()
    assert stage.state(circuit) is CircuitState.FAILED
    assert "no node of this hub joins two hops of its path" in stage.kept(circuit).reason


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda wish: replace(wish, ends=(CircuitEnd("hub-eth0"), CircuitEnd("gate-z"))), "order the circuit from"),
        (
            lambda wish: replace(wish, carriage=CircuitCarriage(CircuitDriver.DECLARED)),
            "passes through this hub's nodes; give --driver linux",
        ),
    ],
)
async def test_an_end_in_another_network_has_one_use(
    ledger: Ledger, clock: FakeClock, change: Callable[[Circuit], Circuit], sentence: str
) -> None:
    stage = await opened(ledger, clock)
    wish = replace(stage.wish(rate=50), ends=(CircuitEnd("gate-a"), CircuitEnd("gate-z")))
    with pytest.raises(BadInput, match=sentence):
        await stage.service.request(change(wish))


async def test_the_hubs_only_port_is_none_of_another_network(ledger: Ledger, clock: FakeClock) -> None:
    stage = await opened(ledger, clock)
    assert (await stage.reserve(to=("ttu.edu",), rate=10)).ends[0].port == "hub-eth0"


def granted(kind: TagKind) -> list[WireTag]:
    """The tags of a circuit that a provider made between two ports with links to its machines."""
    ours = [
        Port("hub-eth0", 1000 * M, None, "eth0", "192.0.2.5", first_vlan=100, last_vlan=109),
        Port("far-eth0", 1000 * M, "far.edu", "eth0", "192.0.2.6", first_vlan=200, last_vlan=209),
    ]
    links = (
        Link("near", "hub-eth0", "gate-a", 1000 * M, 1000 * M, TagRange(kind, 100, 109)),
        Link("far", "far-eth0", "gate-z", 1000 * M, 1000 * M, TagRange(kind, 200, 209)),
    )
    ports = {port.name: port for port in (*ours, *GATES)}
    declared = Topology((Domain("theirs", ports=("gate-a", "gate-z")),), (), links)
    declared.check(ports)
    ends = (
        CircuitEnd("hub-eth0", vlan=104, address="10.9.0.0/31"),
        CircuitEnd("far-eth0", "far.edu", vlan=207, address="10.9.0.1/31"),
    )
    carriage = CircuitCarriage(CircuitDriver.NSI, provider="b")
    circuit = Circuit(17, CircuitRequest("r"), ends, M, M, SOME_TIME, None, carriage=carriage)
    line = lease_line(wired(circuit, Network(declared, ports)))
    assert [end["underlay"] for end in line["ends"]] == (
        ["192.0.2.5", "192.0.2.6"] if kind is TagKind.VNI else [None, None]
    )
    assert (line["driver"], line["vni"], line["transits"]) == ("linux", None, [])
    return [WireTag(end["vlan"], end["vni"], end["via"]) for end in line["ends"]]


def test_a_granted_tag_is_a_vni_where_the_link_to_the_other_network_has_vnis() -> None:
    assert granted(TagKind.VNI) == [WireTag(vni=104, via="192.0.2.1"), WireTag(vni=207, via="192.0.2.9")]


def test_and_a_vlan_where_it_has_vlans() -> None:
    assert granted(TagKind.VLAN) == [WireTag(vlan=104), WireTag(vlan=207)]
