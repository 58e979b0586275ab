"""Leaves of multipoint circuits: what joins and leaves, and all that goes on meanwhile."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_interface

import pytest

from downburst.domain.circuits import (
    Circuit,
    CircuitAnswer,
    CircuitCarriage,
    CircuitEnd,
    CircuitProblem,
    CircuitState,
    Direction,
    Port,
    Replication,
)
from downburst.domain.sites import Site
from downburst.domain.topology import Domain, Maintenance, Topology
from downburst.foundation.errors import (
    AlreadyThere,
    BadInput,
    CircuitConflict,
    Failure,
    LedgerAway,
    NodeAway,
    NotFound,
)
from downburst_circuits.leaves import LEAST_LEAVES
from kit.circuits import M
from unit.circuits.stage import PORTS, SITES, Stage

TWO = SITES[:LEAST_LEAVES]
NEW = SITES[2]


def add(stage: Stage, circuit: Circuit, site: str = NEW, *, dry_run: bool = False) -> Awaitable[CircuitAnswer]:
    leaf = CircuitEnd("", site)
    return stage.service.leaves.add_leaf(circuit.number, leaf, by="eve", dry_run=dry_run)


def remove(stage: Stage, circuit: Circuit, site: str, *, dry_run: bool = False) -> Awaitable[CircuitAnswer]:
    return stage.service.leaves.remove_leaf(circuit.number, site, by="eve", dry_run=dry_run)


def reserved(stage: Stage, port: str, direction: Direction = Direction.OUT) -> int:
    return stage.register.calendar.most_bps(port, direction) // M


async def test_a_leaf_joins_and_is_measured_alone_before_it_is_ridden(stage: Stage) -> None:
    circuit = await stage.active(rate=300, back=100, to=TWO)
    done = len(stage.node.done)
    answer = await add(stage, circuit)
    assert (answer.done, answer.circuit.far_sites) == (True, (*TWO, NEW))
    assert stage.node.done[done:] == [f"up {circuit.number} 300M"]
    assert (NEW, Direction.OUT) not in stage.measured(circuit), "no feed may ride there"
    await stage.settle()
    probed = stage.node.done[done + 1 :]
    assert probed
    assert all(NEW in probe for probe in probed), "the others are not measured again"
    assert stage.measured(circuit)[NEW, Direction.OUT].enough
    assert stage.lived(circuit)[-1] == "active"
    assert stage.lived(circuit).count("active") == 1, "it was active all the time"
    assert stage.node.held[circuit.number].circuit.ends == stage.kept(circuit).ends
    event = stage.events(circuit)[-1]
    assert (event.event, event.by, event.sentence) == ("leaf-added", "eve", f"{NEW} joined at port {NEW}-eth1")


async def test_the_others_keep_their_addresses_and_tags(stage: Stage) -> None:
    circuit = await stage.active(rate=100, to=TWO)
    wide = (await add(stage, circuit)).circuit
    assert wide.ends[:3] == circuit.ends
    added = wide.ends[3]
    assert added.address is not None
    assert added.address not in [end.address for end in circuit.ends]
    assert len({ip_interface(str(end.address)).network for end in wide.ends}) == 1
    assert added.vlan == circuit.ends[0].vlan


async def test_the_hubs_port_holds_a_copy_for_each_leaf(stage: Stage) -> None:
    circuit = await stage.active(rate=300, back=100, to=TWO)
    await add(stage, circuit)
    assert (reserved(stage, "hub-eth0"), reserved(stage, "hub-eth0", Direction.IN)) == (900, 300)
    assert (reserved(stage, f"{NEW}-eth1"), reserved(stage, f"{NEW}-eth1", Direction.IN)) == (100, 300)
    await remove(stage, circuit, TWO[0])
    assert (reserved(stage, "hub-eth0"), reserved(stage, f"{TWO[0]}-eth1", Direction.IN)) == (600, 0)


async def test_an_underlay_that_replicates_needs_the_hubs_rate_once(stage: Stage) -> None:
    carriage = CircuitCarriage(replication=Replication.UNDERLAY, group="239.1.2.3")
    circuit = await stage.active(rate=900, to=TWO, carriage=carriage)
    await add(stage, circuit)
    assert reserved(stage, "hub-eth0") == 900


async def test_a_leaf_that_does_not_fit_is_refused_with_those_in_the_way(stage: Stage) -> None:
    circuit = await stage.active(rate=300, to=TWO)
    other = await stage.active(rate=200)
    with pytest.raises(CircuitConflict, match=f"because of circuits? .*{other.number}.*stays active") as refused:
        await add(stage, circuit)
    assert refused.value.extra["port"] == "hub-eth0"
    assert stage.kept(circuit).far_sites == TWO


async def test_a_dry_run_changes_nothing(stage: Stage) -> None:
    circuit = await stage.active(rate=300, to=TWO)
    done = list(stage.node.done)
    tried = await add(stage, circuit, dry_run=True)
    assert (tried.done, tried.circuit.far_sites) == (False, (*TWO, NEW))
    assert (stage.node.done, stage.kept(circuit).ends) == (done, circuit.ends)
    assert reserved(stage, "hub-eth0") == 600
    wide = (await add(stage, circuit)).circuit
    assert (await remove(stage, circuit, NEW, dry_run=True)).circuit.far_sites == TWO
    assert stage.kept(circuit).ends == wide.ends


async def test_two_leaves_ask_for_the_last_rate_and_one_gets_it(stage: Stage) -> None:
    circuits = [await stage.active(rate=150, to=TWO), await stage.active(rate=250, to=TWO)]
    answers = await asyncio.gather(*(add(stage, one) for one in circuits), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["CircuitAnswer", "CircuitConflict"]
    assert reserved(stage, "hub-eth0") in (950, 1000)


async def test_work_on_other_leaves_is_no_reason_against_one_that_joins(stage: Stage) -> None:
    circuit = await stage.active(rate=100, to=TWO, hours=5)
    begin = stage.clock.now() + timedelta(hours=1)

    async def close(port: str) -> None:
        window = Maintenance(f"work-{port}", (port,), begin, begin + timedelta(hours=1))
        await stage.service.desk.put_topology(Topology((Domain("d"),), maintenance=(window,)))

    await close(f"{NEW}-eth1")
    with pytest.raises(CircuitConflict, match=f"closed .* for maintenance work-{NEW}-eth1"):
        await add(stage, circuit)
    await close(f"{TWO[0]}-eth1")
    await add(stage, circuit)


async def test_a_node_that_refuses_leaves_all_as_it_was(stage: Stage) -> None:
    circuit = await stage.active(rate=300, to=TWO)
    held = stage.node.held[circuit.number]
    stage.node.refuses[circuit.number] = CircuitProblem("the site lets circuits use eth0", "site", NEW, "start it")
    with pytest.raises(Failure, match="stays as it was: the site lets circuits use eth0"):
        await add(stage, circuit)
    assert (stage.kept(circuit).ends, stage.node.held[circuit.number]) == (circuit.ends, held)
    assert reserved(stage, "hub-eth0") == 600
    event = stage.events(circuit)[-1]
    assert (event.event, event.by) == ("leaf-added", "eve")
    assert event.sentence.startswith("the change requested by eve was not made")
    assert stage.state(circuit) is CircuitState.ACTIVE


async def test_a_ledger_that_is_away_leaves_the_node_as_it_was(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = await stage.active(rate=300, to=TWO)

    async def away(*_: object) -> None:
        raise LedgerAway("the ledger's server is away")

    with monkeypatch.context() as patch:
        patch.setattr(stage.register, "change", away)
        with pytest.raises(LedgerAway):
            await add(stage, circuit)
    assert stage.kept(circuit).ends == stage.node.held[circuit.number].circuit.ends == circuit.ends
    assert reserved(stage, "hub-eth0") == 600
    assert (await add(stage, circuit)).circuit.far_sites == (*TWO, NEW)


async def test_a_site_that_is_away_or_a_node_that_is_cannot_join_and_the_next_attempt_can(stage: Stage) -> None:
    circuit = await stage.active(rate=100, to=TWO)
    stage.node.away.add(NEW)
    with pytest.raises(Failure, match=f"{NEW} is not connected"):
        await add(stage, circuit)
    assert stage.node.held[circuit.number].circuit.far_sites == TWO
    stage.node.away.clear()
    stage.node.running = False
    with pytest.raises(NodeAway):
        await add(stage, circuit)
    assert stage.kept(circuit).far_sites == TWO
    stage.node.running = True
    assert (await add(stage, circuit)).circuit.far_sites == (*TWO, NEW)


async def test_a_leaf_that_fails_its_probes_takes_nothing_from_the_others(stage: Stage) -> None:
    circuit = await stage.active(rate=100, to=TWO)
    stage.node.silent.add(NEW)
    await add(stage, circuit)
    await stage.settle()
    assert stage.state(circuit) is CircuitState.DEGRADED
    enough = {site: row.enough for (site, _), row in stage.measured(circuit).items()}
    assert enough == {TWO[0]: True, TWO[1]: True, NEW: False}
    stage.node.silent.clear()
    await stage.after(60)
    assert stage.state(circuit) is CircuitState.ACTIVE
    assert stage.measured(circuit)[NEW, Direction.OUT].enough


async def test_a_leaf_that_leaves_is_gone_with_its_measurements_and_the_rest_goes_on(stage: Stage) -> None:
    circuit = await stage.active(rate=100, to=SITES)
    done = len(stage.node.done)
    answer = await remove(stage, circuit, SITES[0])
    await stage.settle()
    assert answer.circuit.far_sites == stage.kept(circuit).far_sites == SITES[1:]
    assert stage.node.done[done:] == [f"up {circuit.number} 100M"]
    assert {site for site, _ in stage.measured(circuit)} == set(SITES[1:])
    assert [end.address for end in answer.circuit.ends] == [
        end.address for end in circuit.ends if end.site != SITES[0]
    ]
    assert stage.lived(circuit)[-1] == "active"
    assert stage.events(circuit)[-1].sentence == f"{SITES[0]} left"
    await stage.told(circuit, "down", SITES[0])
    assert stage.state(circuit) is CircuitState.ACTIVE, "what the node says of a former leaf is of no interest"
    back = (await add(stage, circuit, SITES[0])).circuit
    assert back.ends[-1].address == circuit.ends[1].address, "the address is free again"


async def test_a_hub_that_starts_again_knows_the_leaves_of_now(stage: Stage) -> None:
    circuit = await stage.active(rate=100, to=TWO)
    await add(stage, circuit)
    await remove(stage, circuit, TWO[0])
    again = await stage.again()
    assert again.register.open[circuit.number].far_sites == (TWO[1], NEW)
    await again.settle()
    assert again.state(circuit) is CircuitState.ACTIVE


async def test_a_circuit_that_has_not_begun_gets_a_leaf_without_the_node(stage: Stage) -> None:
    circuit = await stage.reserve(rate=100, to=TWO, start=1)
    await add(stage, circuit)
    assert stage.node.done == []
    await stage.after(3600)
    assert stage.state(circuit) is CircuitState.ACTIVE
    assert {site for site, _ in stage.measured(circuit)} == {*TWO, NEW}


async def test_what_cannot_join_or_leave_is_told_in_a_sentence(stage: Stage) -> None:
    pair, circuit = await stage.active(rate=10), await stage.active(rate=10, to=TWO)
    with pytest.raises(BadInput, match=f"circuit {pair.number} joins two ends"):
        await add(stage, pair)
    with pytest.raises(AlreadyThere, match=f"has an end at {TWO[0]} already"):
        await add(stage, circuit, TWO[0])
    with pytest.raises(NotFound, match="there is no site 'nowhere'"):
        await add(stage, circuit, "nowhere")
    with pytest.raises(NotFound, match=f"has no end at '{NEW}'; it has {TWO[0]}, {TWO[1]}"):
        await remove(stage, circuit, NEW)
    with pytest.raises(BadInput, match=f"needs two sites at least, so {TWO[0]} can't leave it"):
        await remove(stage, circuit, TWO[0])
    await stage.service.cancel(circuit.number, by="eve")
    await stage.settle()
    with pytest.raises(BadInput, match="is cancelled, so it can't be changed"):
        await add(stage, circuit)
    with pytest.raises(NotFound, match="there is no circuit 99"):
        await stage.service.leaves.remove_leaf(99, NEW, by="eve")


async def test_a_full_block_of_addresses_takes_no_leaf(stage: Stage) -> None:
    names = [f"site-{number}" for number in range(28)]
    for name in names:
        with stage.ledger.transaction() as tx:
            tx.sites.add(Site(name))
        await stage.service.add_port(replace(PORTS[1], name=f"{name}-eth1", site=name))
    circuit = await stage.active(rate=1, to=(TWO[0], *names))
    with pytest.raises(BadInput, match="has inner addresses for 29 sites and all are taken"):
        await add(stage, circuit)
    await remove(stage, circuit, names[5])
    assert (await add(stage, circuit)).circuit.ends[-1].address == circuit.ends[7].address


async def test_a_port_may_be_named_instead_of_the_site(stage: Stage) -> None:
    await stage.service.add_port(Port("second", 1000 * M, NEW, "eth2", "192.0.2.99"))
    circuit = await stage.active(rate=10, to=TWO)
    with pytest.raises(BadInput, match=f"site {NEW} has the ports"):
        await add(stage, circuit)
    leaf = CircuitEnd("second")
    answer = await stage.service.leaves.add_leaf(circuit.number, leaf, by="eve")
    assert (answer.circuit.ends[-1].port, answer.circuit.ends[-1].vlan) == ("second", None)
