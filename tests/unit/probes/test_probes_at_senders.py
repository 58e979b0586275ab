"""Probes of sites that senders serve: the node of the session runs them, and its end or the site's move ends them."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from downburst.domain.circuits import Port
from downburst.domain.events import SessionChanged
from downburst.domain.probes import ProbeKind, ProbeState
from downburst.domain.senders import SenderSeen
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import Failure
from downburst.ledger import Ledger
from downburst.parts.names import SenderPart
from downburst.parts.questions import answer_for_good
from downburst_probes.nodes import SILENT_S, answers_of_probes
from factories import probe_request
from kit.probes import ProbeNodeInMemory, step
from unit.probes.stage import M, Stage

SITE = "unl.edu"


class SenderStage(Stage):
    """The sender one serves unl.edu."""

    def __init__(self, ledger: Ledger, clock: FakeClock) -> None:
        super().__init__(ledger, clock)
        self.at_sender = ProbeNodeInMemory()
        with ledger.transaction() as tx:
            tx.ports.add(Port("one-eth0", 1_000 * M, sender="one"))
        self.moves("one")
        self.lives()

    def moves(self, sender: str) -> None:
        for name in {"one", "two"} - {sender}:
            self.live.hear_sender(SessionChanged(SITE, "closed", self.clock.now(), "192.0.2.1:9", sender=name))
        self.live.hear_sender(SessionChanged(SITE, "connected", self.clock.now(), "192.0.2.1:9", sender=sender))

    def lives(self, run: str = "r1", *, running: bool = True) -> None:
        self.runner.handle(SenderSeen("one", run, running))


@pytest.fixture
async def stage(ledger: Ledger, clock: FakeClock) -> AsyncIterator[SenderStage]:
    stage = SenderStage(ledger, clock)
    answers = answers_of_probes(stage.at_sender)
    task = asyncio.create_task(answer_for_good(stage.bus, SenderPart("one"), answers))
    await asyncio.sleep(0)
    yield stage
    task.cancel()


async def test_the_sender_of_the_session_runs_the_probe_and_lends_its_port(stage: SenderStage) -> None:
    probe = await stage.started()
    assert probe.state is ProbeState.RUNNING, probe.reason
    assert [one.name for one in stage.at_sender.started] == [probe.name]
    assert stage.node.started == []
    assert (probe.circumstances["reserved"], probe.circumstances["sender"]) == (["one-eth0", "unl-eth1"], "one")
    ended = await stage.ends(probe)
    assert (ended.state, ended.result.steps if ended.result else None) == (ProbeState.DONE, (step(10 * M),))


async def test_a_refusal_of_the_sender_is_the_reason(stage: SenderStage) -> None:
    stage.at_sender.refusal = Failure("unl.edu takes part in no probes")
    probe = await stage.started()
    await stage.work()
    assert (stage.kept(probe).state, stage.kept(probe).reason) == (
        ProbeState.FAILED,
        "unl.edu takes part in no probes",
    )


async def test_products_that_become_late_at_a_senders_site_end_its_probe_there(stage: SenderStage) -> None:
    probe = await stage.started()
    stage.lacks(SITE, 3)
    await stage.work()
    ((name, reason),) = stage.at_sender.stopped
    assert name == probe.name
    assert reason.startswith("products became late: products of NGRID for unl.edu")


@pytest.mark.parametrize("end", ["silence", "restart", "node"])
async def test_a_sender_that_dies_has_lost_its_probe(stage: SenderStage, end: str) -> None:
    probe = await stage.started()
    stage.lives()
    await stage.work(seconds=SILENT_S / 2)
    assert stage.kept(probe).state is ProbeState.RUNNING
    if end == "restart":
        stage.lives("r2")
    elif end == "node":
        stage.lives(running=False)
    else:
        for _ in range(4):
            await stage.work(seconds=SILENT_S / 2)
    await stage.work()
    assert (stage.kept(probe).state, stage.kept(probe).reason) == (ProbeState.FAILED, "the sender one ended")


async def test_a_hub_that_stalled_has_heard_no_sign_and_ends_no_probe(stage: SenderStage) -> None:
    probe = await stage.started()
    await stage.work(seconds=2 * SILENT_S)
    assert stage.kept(probe).state is ProbeState.RUNNING


async def test_a_soak_follows_its_site_to_another_node(stage: SenderStage) -> None:
    probe = await stage.started(probe_request(kind=ProbeKind.SOAK))
    stage.moves("two")
    await stage.work()
    ((name, reason),) = stage.at_sender.stopped
    assert (name, reason) == (probe.name, "unl.edu moved to the sender two")
    await stage.ends(probe)
    await stage.work()
    waiting = stage.kept(probe)
    assert (waiting.state, waiting.reason) == (ProbeState.WAITING, "the sender two is not running")
    assert [gap.reason for gap in waiting.gaps] == ["unl.edu moved to the sender two"]
    stage.runner.handle(SenderSeen("one", "r1", running=True))
    stage.moves("one")
    await stage.work()
    assert [one.name for one in stage.at_sender.started] == [probe.name, f"p{probe.id}-2"]


async def test_a_site_at_a_sender_without_signs_of_life_is_waited_for(stage: SenderStage) -> None:
    stage.restart()
    probe = await stage.started()
    assert (probe.state, probe.reason) == (ProbeState.WAITING, "the sender one is not running")
