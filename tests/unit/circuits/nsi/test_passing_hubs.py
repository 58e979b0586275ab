"""Two domains of which B only passes frames on: its ends are A's machines, and its sites join the hops."""

from dataclasses import replace
from pathlib import Path

import pytest

from downburst.domain.circuits import CircuitState, Port
from downburst.domain.topology import Domain, Link, Switch, TagKind, TagRange, Topology
from kit.circuits import M
from unit.circuits.nsi.lender import STPS, TwoHubs
from unit.circuits.nsi.test_two_hubs import close, opened, ordered_and_given_back

GATES = (
    Port("gate-hub", 1000 * M, underlay="192.0.2.1", first_vlan=100, last_vlan=119, stp=f"{STPS}:hub-eth0"),
    Port("gate-unl", 1000 * M, underlay="192.0.2.9", first_vlan=120, last_vlan=139, stp=f"{STPS}:unl.edu-eth1"),
)
TOPOLOGY = Topology(
    (Domain("a", ports=("gate-hub", "gate-unl")), Domain("b")),
    (Switch("border", "b", ("s-1", "s-2"), translates=True, node="ttu.edu"),),
    (
        Link("in", "gate-hub", "s-1", 1000 * M, 1000 * M, TagRange(TagKind.VNI, 100, 119)),
        Link("out", "s-2", "gate-unl", 1000 * M, 1000 * M, TagRange(TagKind.VNI, 120, 139)),
    ),
)


async def passing(hub: TwoHubs) -> TwoHubs:
    """Gives the STPs that A asks for to machines of A, before any step counts."""
    lender = hub.lender
    trial, lender.trial.kill_at = lender.trial.kill_at, frozenset()
    service, ports = lender.stage.service, lender.stage.register.ports
    for port in list(ports.values()):
        await service.change_port(replace(port, stp=""))
    for gate in GATES:
        await service.add_port(gate)
    await service.desk.put_topology(TOPOLOGY)
    lender.trial.kill_at, lender.trial.steps = trial, 0
    return hub


async def test_a_circuit_passes_through_b_by_the_tags_that_a_was_granted(empty_ledger: Path, tmp_path: Path) -> None:
    hub = await passing(await opened(empty_ledger, tmp_path))
    circuit = await hub.active(hours=10)
    (lease,) = hub.lender.node.held.values()
    (transit,) = lease.transits
    assert lease.circuit.passes
    assert [end.vlan for end in hub.stage.kept(circuit).ends] == [transit.near.vni, transit.far.vni]
    assert (transit.near.via, transit.far.via) == ("192.0.2.1", "192.0.2.9")
    assert [one.state for one in hub.lender.circuits()] == [CircuitState.ACTIVE]
    close(hub)


@pytest.mark.all
async def test_b_is_killed_before_and_after_each_write(empty_ledger: Path, tmp_path: Path) -> None:
    whole = await passing(await opened(empty_ledger, tmp_path))
    await ordered_and_given_back(whole)
    steps = whole.lender.trial.steps
    close(whole)
    assert steps > 30
    for step in range(1, steps + 1):
        hub = await passing(await opened(empty_ledger, tmp_path, f"b{step}", kill_b=frozenset({step})))
        try:
            await ordered_and_given_back(hub)
        except AssertionError as error:
            raise AssertionError(f"B killed at step {step}: {error}") from error
        assert hub.lender.lives == 2
        close(hub)
