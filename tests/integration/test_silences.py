"""Signs of a feed's silences from the real node, with the stamps of its products."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from downburst.domain.events import NodeChanged
from downburst.domain.feeds import Feed
from downburst.domain.ordering.signs import FeedSilent, FeedStirred, SilencesWatched
from downburst.domain.products import Product
from downburst.foundation.clock import FakeClock, to_us
from downburst.foundation.errors import BadInput
from downburst.ledger import Ledger
from kit.node import node_binary
from unit.worker.test_agent import Stage

HOLD_US = 200_000


@pytest.fixture
async def stage(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[Stage]:
    made = Stage(tmp_path / "hub", ledger, clock, argv=(node_binary(), "hub"), sites="127.0.0.1:0")
    await made.agent.start()
    yield made
    await made.agent.stop()


async def put(stage: Stage, feed: str, product_id: str) -> int:
    """Ingests a product; the stamp of its arrival."""
    spool = stage.settings.spool_dir / product_id
    spool.write_bytes(product_id.encode())
    stored = await stage.agent.ingest(spool, Product(feed, product_id))
    assert stored.stored_at is not None
    return to_us(stored.stored_at)


async def watch(stage: Stage, *feeds: str) -> None:
    """Has the node watch these feeds; it does when this returns."""
    await stage.agent._desired.watch_silences(SilencesWatched(tuple((feed, HOLD_US) for feed in feeds)))


async def add(stage: Stage, feed: str) -> None:
    await stage.ledger.write(lambda tx: tx.feeds.add(Feed(feed)))
    await stage.agent.refresh()


async def test_a_feed_stirs_is_silent_and_stirs_again(stage: Stage) -> None:
    await watch(stage, "LATER")
    await add(stage, "LATER")
    await add(stage, "OTHER")
    await put(stage, "OTHER", "unwatched")
    first = await put(stage, "LATER", "one")
    assert await stage.event(FeedStirred) == FeedStirred("LATER", first)
    silent = await stage.event(FeedSilent)
    assert silent == FeedSilent("LATER", first, first + HOLD_US)
    again = await put(stage, "LATER", "two")
    assert again >= silent.at_us
    assert await stage.event(FeedStirred) == FeedStirred("LATER", again)
    assert await stage.event(FeedSilent) == FeedSilent("LATER", again, again + HOLD_US)


async def test_a_node_that_is_restarted_watches_again(stage: Stage) -> None:
    await add(stage, "NGRID")
    await watch(stage, "NGRID")
    await put(stage, "NGRID", "one")
    await stage.event(FeedSilent)
    stage.agent.restart_node()
    while not (await stage.event(NodeChanged)).running:
        pass
    second = await put(stage, "NGRID", "two")
    assert await stage.event(FeedStirred) == FeedStirred("NGRID", second)
    assert await stage.event(FeedSilent) == FeedSilent("NGRID", second, second + HOLD_US)


async def test_an_impossible_set_is_refused_in_one_sentence_and_changes_nothing(stage: Stage) -> None:
    await add(stage, "NGRID")
    await watch(stage, "NGRID")
    with pytest.raises(BadInput, match=r"^`hold_us` of NGRID is 9999; it is a number from 10000 to 86400000000$"):
        await stage.agent._desired.watch_silences(SilencesWatched((("NGRID", 9_999),)))
    arrived = await put(stage, "NGRID", "one")
    assert await stage.event(FeedStirred) == FeedStirred("NGRID", arrived)
