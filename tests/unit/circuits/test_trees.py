"""Multipoint circuits over a topology: paths that share links, and leaves that come and go."""

import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitCarriage,
    CircuitChange,
    CircuitEnd,
    CircuitHop,
    CircuitRequest,
    Direction,
    Replication,
)
from downburst.domain.topology import Domain, Host, Link, Switch, TagKind, TagRange, Topology
from downburst.foundation.errors import AlreadyThere, BadInput, CircuitConflict
from downburst_circuits.desk.trees import link_claims, ways
from kit.circuits import M
from unit.circuits.stage import SITES, Stage
from unit.circuits.test_leaves import NEW, TWO, add, remove

UNDERLAY = CircuitCarriage(replication=Replication.UNDERLAY, group="239.1.2.3")
TAGS = TagRange(TagKind.VLAN, 100, 199)


def network(*, trunk: int = 1000, second: int = 1000) -> Topology:
    """The hub's link to a switch, from there a trunk and a longer second way to the core, and a link to each site."""
    switches = (
        Switch("near", "d", ("near-hub", "near-core", "near-side")),
        Switch("core", "d", ("core-near", "core-side", *(f"core-{number}" for number in range(3)))),
        Switch("side", "d", ("side-near", "side-core")),
    )
    links = (
        Link("up", "hub-eth0", "near-hub", 1000 * M, 1000 * M, TAGS),
        Link("trunk", "near-core", "core-near", trunk * M, trunk * M, TAGS),
        Link("way-a", "near-side", "side-near", second * M, second * M),
        Link("way-b", "core-side", "side-core", second * M, second * M, cost=5),
        *(Link(f"to-{site}", f"core-{at}", f"{site}-eth1", 500 * M, 500 * M) for at, site in enumerate(SITES)),
    )
    return Topology((Domain("d"),), switches, links, hosts=(Host("nic", ("hub-eth0",), 1000 * M),))


@pytest.fixture
async def desk(stage: Stage) -> Stage:
    await stage.service.desk.put_topology(network())
    return stage


def held(stage: Stage, link: str) -> tuple[int, int]:
    calendar = stage.register.calendar
    out, back = (calendar.most_bps(f"link {link}", direction) for direction in Direction)
    return out // M, back // M


def of(stage: Stage, circuit: Circuit) -> dict[str, list[str]]:
    """The links on the path to each site."""
    found = ways(stage.kept(circuit), stage.register.network)
    return {port.removesuffix("-eth1"): [hop.link for hop in way] for port, way in found.items()}


async def test_copies_by_the_hub_add_up_on_shared_links(desk: Stage) -> None:
    circuit = await desk.active(rate=300, back=100, to=TWO)
    assert of(desk, circuit) == {site: ["up", "trunk", f"to-{site}"] for site in TWO}
    assert (held(desk, "trunk"), held(desk, f"to-{TWO[0]}"), held(desk, "way-a")) == ((600, 200), (300, 100), (0, 0))
    await add(desk, circuit)
    assert of(desk, circuit) == {site: ["up", "trunk", f"to-{site}"] for site in SITES}
    assert (held(desk, "trunk"), held(desk, f"to-{NEW}")) == ((900, 300), (300, 100))
    await remove(desk, circuit, TWO[0])
    assert of(desk, circuit) == {site: ["up", "trunk", f"to-{site}"] for site in SITES[1:]}
    assert (held(desk, "trunk"), held(desk, f"to-{TWO[0]}")) == ((600, 200), (0, 0))
    again = await desk.again()
    assert (held(again, "trunk"), of(again, circuit)) == (held(desk, "trunk"), of(desk, circuit))
    await desk.service.cancel(circuit.number, by="eve")
    await desk.settle()
    assert held(desk, "trunk") == held(desk, f"to-{NEW}") == (0, 0)


async def test_an_underlay_that_replicates_needs_each_link_once(desk: Stage) -> None:
    circuit = await desk.active(rate=450, back=10, to=TWO, carriage=UNDERLAY)
    await add(desk, circuit)
    assert (held(desk, "trunk"), held(desk, f"to-{NEW}")) == ((450, 30), (450, 10))
    await remove(desk, circuit, TWO[0])
    assert held(desk, "trunk") == (450, 20)


async def test_a_leaf_without_room_on_the_short_way_takes_the_long_one(stage: Stage) -> None:
    await stage.service.desk.put_topology(network(trunk=700))
    circuit = await stage.active(rate=300, to=TWO)
    await add(stage, circuit)
    assert of(stage, circuit)[NEW] == ["up", "way-a", "way-b", f"to-{NEW}"]
    assert (held(stage, "trunk"), held(stage, "way-a")) == ((600, 0), (300, 0))
    kept = stage.kept(circuit)
    assert kept.path[-2] == CircuitHop("way-b", forward=False), "it is taken against its direction"
    assert held(stage, "way-b") == (0, 300)


async def test_a_request_spreads_its_leaves_over_the_links_that_have_room(stage: Stage) -> None:
    await stage.service.desk.put_topology(network(trunk=400))
    circuit = await stage.active(rate=300, to=SITES)
    assert Counter(way[1] for way in of(stage, circuit).values()) == {"trunk": 1, "way-a": 2}


async def test_a_full_link_is_named_with_its_holders(stage: Stage) -> None:
    await stage.service.desk.put_topology(network(trunk=700, second=100))
    circuit = await stage.active(rate=300, to=TWO)
    with pytest.raises(CircuitConflict, match="link trunk has 100 Mb/s of 700 Mb/s free") as refused:
        await add(stage, circuit)
    assert refused.value.extra["port"] == "link trunk"
    with pytest.raises(CircuitConflict, match=f"link trunk has .* because of circuit {circuit.number}"):
        await stage.reserve(rate=110, to=TWO)
    assert held(stage, "trunk") == (600, 0)
    await stage.reserve(rate=100, to=TWO)


async def test_a_leaf_that_no_path_reaches_is_refused_and_one_outside_the_topology_is_not(stage: Stage) -> None:
    whole = network()
    island = Switch("island", "d", ("shore", "beach"))
    ferry = Link("ferry", "beach", f"{NEW}-eth1", 500 * M, 500 * M)
    cut = replace(whole, switches=(*whole.switches, island), links=(*whole.links[:-1], ferry))
    await stage.service.desk.put_topology(cut)
    circuit = await stage.active(rate=10, to=TWO)
    with pytest.raises(BadInput, match=f"no path leads from hub-eth0 to {NEW}-eth1"):
        await add(stage, circuit)
    with pytest.raises(BadInput, match="no path leads"):
        await stage.reserve(rate=10, to=SITES)
    await stage.service.desk.put_topology(replace(whole, links=whole.links[:-1]))
    await add(stage, circuit)
    assert set(of(stage, circuit)) == set(TWO)


async def test_a_change_and_a_copy_have_their_own_claims(desk: Stage) -> None:
    circuit = await desk.active(rate=100, back=0, to=TWO)
    await desk.service.modify(circuit.number, CircuitChange(rate_out_bps=200 * M), by="eve")
    assert held(desk, "trunk") == (400, 0)
    other = await desk.active(rate=500, back=0, to=(NEW,))
    with pytest.raises(CircuitConflict, match=f"because of circuit {other.number}.*stays active"):
        await desk.service.modify(circuit.number, CircuitChange(rate_out_bps=300 * M), by="eve")
    await desk.service.cancel(other.number, by="eve")
    await desk.settle()
    before = held(desk, "trunk")[0]
    copied = await desk.service.clone(circuit.number, request_id="again", begin=circuit.end, by="eve")
    assert set(of(desk, copied.circuit)) == set(desk.kept(circuit).far_sites)
    assert held(desk, "trunk")[0] == before, "it begins where the other ends"


async def test_the_topology_keeps_the_links_of_leaves_until_they_have_left(desk: Stage) -> None:
    circuit = await desk.active(rate=100, to=SITES)
    whole = network()
    fewer = replace(whole, links=tuple(link for link in whole.links if link.name != f"to-{NEW}"))
    with pytest.raises(AlreadyThere, match=f"link to-{NEW} is needed by circuit {circuit.number}"):
        await desk.service.desk.put_topology(fewer)
    await remove(desk, circuit, NEW)
    await desk.service.desk.put_topology(fewer)
    assert held(desk, "trunk") == (200, 0)


async def test_leaves_that_come_and_go_at_random_hold_what_their_paths_need(stage: Stage) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    await stage.service.desk.put_topology(network(trunk=chance.choice([500, 700, 900]), second=400))
    circuits = [
        await stage.reserve(rate=chance.choice([50, 100]), back=20, to=TWO, start=1, carriage=carriage)
        for carriage in (CircuitCarriage(), UNDERLAY)
    ]
    for _ in range(60):
        circuit = stage.kept(chance.choice(circuits))
        site = chance.choice(SITES)
        with suppress(BadInput, CircuitConflict):
            await (remove if site in circuit.sites else add)(stage, circuit, site)
        _check_links(stage, [stage.kept(one) for one in circuits])


def _check_links(stage: Stage, circuits: list[Circuit]) -> None:
    """Adds up the rates by the definition, path by path."""
    expected: Counter[tuple[str, Direction]] = Counter()
    for circuit in circuits:
        found = ways(circuit, stage.register.network)
        assert set(found) == {end.port for end in circuit.ends[1:]}
        once: set[tuple[str, Direction]] = set()
        for hop in (hop for way in found.values() for hop in way):
            ahead, back = (Direction.OUT, Direction.IN) if hop.forward else (Direction.IN, Direction.OUT)
            expected[hop.link, back] += circuit.rate_in_bps
            if circuit.carriage.replication is Replication.HEAD_END or (hop.link, ahead) not in once:
                expected[hop.link, ahead] += circuit.rate_out_bps
            once.add((hop.link, ahead))
    calendar = stage.register.calendar
    for link in stage.register.network.topology.links:
        for direction in Direction:
            key = f"link {link.name}"
            assert calendar.most_bps(key, direction) == expected[link.name, direction]
            assert expected[link.name, direction] <= calendar.rate_bps(key, direction)


def test_a_path_between_two_ends_is_claimed_with_its_tags() -> None:
    hops = (CircuitHop("up", True, 100), CircuitHop("down", False, 7))
    moment = datetime.now().astimezone()
    ends = (CircuitEnd("h"), CircuitEnd("p", "s"))
    circuit = Circuit(1, CircuitRequest("r"), ends, 30, 4, moment, None, path=hops)
    claims = [(one.resource, one.out_bps, one.in_bps, one.tag) for one in link_claims(circuit)]
    assert claims == [("link up", 30, 4, 100), ("link down", 4, 30, 7)]
