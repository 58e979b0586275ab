"""Products that arrived late while a probe ran end it; those of before do not."""

import pytest

from downburst.domain.probes import ProbeState
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from factories import probe_request
from unit.probes.stage import Stage

OBJECTIVE_MS = 2_000


@pytest.fixture
def stage(ledger: Ledger, clock: FakeClock) -> Stage:
    return Stage(ledger, clock)


async def test_a_probe_ends_when_products_of_any_site_arrive_later_than_their_objective(stage: Stage) -> None:
    probe = await stage.started()
    stage.clock.advance(2)
    stage.delivers("isu.edu", OBJECTIVE_MS + 50)
    await stage.work()
    kept = await stage.ends(probe, outcome="stopped")
    assert kept.state is ProbeState.STOPPED
    assert kept.reason == "products became late: products of NGRID for isu.edu took 2.0 s; the objective is 2 s"


async def test_products_in_time_or_within_their_bound_end_nothing(stage: Stage) -> None:
    probe = await stage.started()
    stage.clock.advance(2)
    stage.delivers("unl.edu", OBJECTIVE_MS - 1)
    stage.delivers("isu.edu", OBJECTIVE_MS + 50, bound_ms=51)
    await stage.work()
    assert stage.kept(probe).state is ProbeState.RUNNING
    assert stage.node.stopped == []


async def test_a_path_that_was_late_before_the_probe_and_reports_from_before_end_nothing(stage: Stage) -> None:
    await stage.work()
    stage.delivers("isu.edu", OBJECTIVE_MS + 50)
    probe = await stage.started()
    stage.clock.advance(1)
    stage.delivers("unl.edu", OBJECTIVE_MS + 50)
    stage.clock.advance(1)
    stage.delivers("isu.edu", OBJECTIVE_MS + 50)
    await stage.work()
    assert stage.kept(probe).state is ProbeState.RUNNING


async def test_a_probe_waits_while_products_of_its_site_arrive_late(stage: Stage) -> None:
    await stage.work()
    stage.delivers("unl.edu", OBJECTIVE_MS + 50)
    probe = await stage.started(probe_request("unl.edu"))
    assert (probe.state, probe.reason[:18]) == (ProbeState.WAITING, "products are late:")
    await stage.work(11)
    assert stage.kept(probe).state is ProbeState.RUNNING
