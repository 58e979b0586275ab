"""Siblings between the agent and its node: the exchanges of sites, and the bytes saved."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from downburst.domain.events import SitesChanged
from downburst.domain.feeds import Feed
from downburst.domain.relays.siblings import Saved, SiblingExchange
from downburst.domain.sites import Site
from downburst.foundation.bounds import SetAside
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger, Transaction
from downburst_worker.messages.sibling_lines import saved
from unit.worker.test_agent import Stage

ENTRY = {"site": "oslo", "feed": "NGRID", "products": 3, "bytes": 900}


@pytest.fixture
async def stage(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[Stage]:
    made = Stage(tmp_path / "hub", ledger, clock)
    await made.agent.start()
    yield made
    await made.agent.stop()


def _fill(tx: Transaction) -> None:
    tx.feeds.add(Feed("NGRID"))
    for name in ("oslo", "bergen"):
        tx.sites.add(Site(name))
    tx.fleet.siblings.put(SiblingExchange("oslo", "oslo.example:7380", 1_000, 2_000))


async def test_the_exchange_of_a_site_reaches_the_node(stage: Stage) -> None:
    await stage.ledger.write(_fill)
    stage.bus.publish(SitesChanged())
    job = await stage.last_job("sites", lambda job: any(line.get("siblings") for line in job["sites"]))
    told = {line["site"]: line["siblings"] for line in job["sites"]}
    exchange = {"address": "oslo.example:7380", "upload_bytes_per_second": 1_000, "upload_bytes_per_day": 2_000}
    assert told == {"oslo": exchange, "bergen": None}


async def test_saved_bytes_go_into_the_ledger(stage: Stage) -> None:
    await stage.ledger.write(_fill)
    await stage.says(event="siblings", saved=[ENTRY])
    await stage.says(event="siblings", saved=[ENTRY, ENTRY | {"site": "gone"}])
    found: list[Saved] = []
    while sum(one.products for one in found) < 6:
        await asyncio.sleep(0.01)
        found = await stage.ledger.read(lambda tx: tx.fleet.siblings.savings())
    assert found == [Saved("oslo", "NGRID", 6, 1_800)]


@pytest.mark.parametrize("name", list(ENTRY))
def test_an_impossible_entry_is_set_aside_and_the_others_count(name: str) -> None:
    aside: list[SetAside] = []
    found = saved({"saved": [ENTRY | {name: -1}, ENTRY]}, aside)
    assert found == (Saved("oslo", "NGRID", 3, 900),)
    assert [type(one) for one in aside] == [SetAside]
