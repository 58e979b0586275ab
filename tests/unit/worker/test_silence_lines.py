"""Silences of feeds between the agent and its node: the wish of the scheduler, and the signs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.events import FaultSeen, SubscriptionsChanged
from downburst.domain.ordering.signs import FeedSilent, FeedStirred, SilencesWatched
from downburst.foundation.bounds import CLOCK_MAX_US, OutOfBounds
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_worker.messages.silence_lines import feed_silent, feed_stirred, silences_job
from downburst_worker.roles import SenderRole
from unit.worker.test_agent import Stage

WATCHED = SilencesWatched((("NGRID", 60_000_000), ("LATER", 10_000)))
TOLD = [{"feed": "NGRID", "hold_us": 60_000_000}, {"feed": "LATER", "hold_us": 10_000}]
SILENT: dict[str, Any] = {"event": "silent", "feed": "NGRID", "since_us": 5, "until_us": 60_000_005}


@pytest.fixture
async def stage(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[Stage]:
    made = Stage(tmp_path / "hub", ledger, clock)
    await made.agent.start()
    yield made
    await made.agent.stop()


async def told(stage: Stage) -> list[list[dict[str, Any]]]:
    return [job["feeds"] for job in await stage.jobs("silences")]


def test_the_job_and_the_signs_have_the_form_of_the_lines() -> None:
    assert silences_job(WATCHED) == {"feeds": TOLD}
    assert feed_stirred({"feed": "NGRID", "arrived_us": 7}) == FeedStirred("NGRID", 7)
    assert feed_silent(SILENT) == FeedSilent("NGRID", 5, 60_000_005)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"feed": value} for value in (None, 5, "", "no blanks", "x" * 1_000)),
        *({"since_us": value} for value in (-1, CLOCK_MAX_US + 1, 1.5, True, None, 60_000_006)),
        *({"until_us": value} for value in (4, 2**63, "6")),
    ],
)
def test_a_sign_out_of_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OutOfBounds):
        feed_silent(SILENT | wrong)


@pytest.mark.parametrize("wrong", [{"feed": "no blanks"}, {"arrived_us": -1}, {"arrived_us": None}])
def test_a_sign_of_a_product_out_of_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OutOfBounds):
        feed_stirred({"feed": "NGRID", "arrived_us": 7} | wrong)


async def test_the_set_is_sent_when_it_is_wished_and_at_each_start(stage: Stage) -> None:
    assert await told(stage) == [], "no silence counts yet"
    stage.bus.publish(WATCHED)
    await stage.last_job("silences", lambda job: job["feeds"] == TOLD)
    await stage.agent._make_ready()
    assert (await told(stage))[-1] == TOLD
    jobs = [job["do"] for job in (await stage.agent._node.request("told"))["jobs"]]
    assert jobs[-4:] == ["start", "feeds", "sites", "silences"]
    stage.bus.publish(SilencesWatched(()))
    await stage.last_job("silences", lambda job: job["feeds"] == [])
    before = len(await told(stage))
    await stage.agent._make_ready()
    assert len(await told(stage)) == before, "a node that has just started watches no feed"


async def test_signs_are_published_with_their_times_and_impossible_ones_are_not(stage: Stage) -> None:
    await stage.says(event="stirred", feed="NGRID", arrived_us=1_767_225_600_000_001)
    assert await stage.event(FeedStirred) == FeedStirred("NGRID", 1_767_225_600_000_001)
    await stage.says(**SILENT | {"since_us": -1})
    await stage.says(**SILENT)
    assert await stage.event(FeedSilent) == FeedSilent("NGRID", 5, 60_000_005)


async def test_a_refused_set_is_a_fault_and_the_next_one_is_sent(stage: Stage) -> None:
    stage.bus.publish(SilencesWatched((("NGRID", 9_999),)))
    assert "`hold_us` of NGRID is too short" in (await stage.event(FaultSeen)).sentence
    await stage.agent._make_ready()
    assert "`hold_us` of NGRID is too short" in (await stage.event(FaultSeen)).sentence
    assert stage.agent.running
    stage.bus.publish(WATCHED)
    await stage.last_job("silences", lambda job: job["feeds"] == TOLD)


async def test_the_newest_set_counts_though_changes_before_it_were_lost(stage: Stage) -> None:
    for _ in range(300):
        stage.bus.publish(SubscriptionsChanged())
    stage.bus.publish(WATCHED)
    await stage.last_job("silences", lambda job: job["feeds"] == TOLD)


@pytest.mark.all
async def test_a_sender_watches_no_silences(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> None:
    with ledger.transaction() as tx:
        tx.fleet.senders.register("one", address="one:1", public_key="fake-key")
        tx.fleet.senders.certify("one", "fake-key", certificate="c", authority="a")
    stage = Stage(tmp_path / "one", ledger, clock, role=SenderRole(ledger, name="one", address="one:1"))
    await stage.agent.start()
    try:
        stage.bus.publish(WATCHED)
        stage.bus.publish(SubscriptionsChanged())
        async with asyncio.timeout(20):
            while len(await stage.jobs("sites")) < 2:
                pass
        assert await told(stage) == []
    finally:
        await stage.agent.stop()
