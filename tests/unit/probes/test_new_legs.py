"""Legs that begin while a probe runs: products that its admission did not count on."""

import pytest

from downburst.domain.events import PlanMade
from downburst.domain.plans import Leg, Plan, Transport
from downburst.domain.probes import ProbeKind, ProbeState
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_probes.legs import legs_to, new_leg
from factories import SOME_TIME, multicast, probe_request, unicast
from unit.probes.stage import M, Stage

SITES = ("unl.edu",)


def plan(*legs: Leg) -> Plan:
    return Plan("NGRID", 2, legs, "why", SOME_TIME)


@pytest.fixture
def stage(ledger: Ledger, clock: FakeClock) -> Stage:
    return Stage(ledger, clock)


def test_a_leg_is_new_by_its_group_its_circuit_and_a_higher_rate() -> None:
    before = legs_to(SITES, [plan(multicast(1, "unl.edu", "isu.edu"))])
    known = multicast(2, "unl.edu")
    assert new_leg(SITES, before, plan(known)) is None, "under another number"
    assert new_leg(SITES, before, plan(unicast(3, "unl.edu"))) is None
    assert new_leg(SITES, before, plan(multicast(4, "isu.edu"))) is None
    circuit = Leg(5, Transport.STATIC_CIRCUIT, SITES, circuits=(("unl.edu", 7),))
    found = new_leg(SITES, before, plan(known, circuit))
    assert found is not None
    assert found.words == "NGRID has a new static-circuit leg to the site"
    lower, same = legs_to(SITES, [plan(known)]), plan(known)
    assert new_leg(SITES, dict.fromkeys(lower, 300 * M), same) is not None
    assert new_leg(SITES, dict.fromkeys(lower, 480 * M), same) is None, "fitted anew"
    assert new_leg(SITES, dict.fromkeys(lower, 500 * M), same) is None


@pytest.mark.parametrize(
    ("kind", "state"), [(ProbeKind.CBR, ProbeState.STOPPED), (ProbeKind.SOAK, ProbeState.WAITING)]
)
async def test_a_probe_ends_for_a_new_leg_and_a_soak_continues_beside_it(
    stage: Stage, kind: ProbeKind, state: ProbeState
) -> None:
    probe = await stage.started(probe_request(kind=kind))
    stage.runner.handle(PlanMade(plan(multicast(1, "isu.edu"))))
    await stage.work()
    assert stage.node.stopped == []
    stage.runner.handle(PlanMade(plan(multicast(1, "unl.edu"))))
    await stage.work()
    assert stage.node.stopped == [(probe.name, "NGRID has a new multicast leg of 400 Mb/s to the site")]
    ended = await stage.ends(probe)
    assert ended.state is state
    assert "NGRID has a new multicast leg of 400 Mb/s to the site" in ended.reason
