"""The hub itself reports logs that hold less than the longest outage: once, and until they are long enough."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from downburst.domain.feeds import Feed, TrafficMinute
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.live.state import LiveState
from downburst_app.retention.watch import RetentionWatch

GB = 10**9
MINUTE = 29_000_000


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID", retention_hours=48.0, retention_bytes=4 * GB))
        tx.feeds.add(Feed("IDS|DDPLUS", retention_hours=48.0))
        tx.measured.traffic.add([TrafficMinute("NGRID", MINUTE + at, 1, GB // 60, GB // 60) for at in range(120)])
    yield ledger
    ledger.close()


async def test_a_ceiling_that_cuts_below_the_outage_is_said_once_and_shown_until_it_is_raised(ledger: Ledger) -> None:
    said: list[tuple[str, str]] = []
    clock = FakeClock()

    async def say(sentence: str, step: str) -> None:
        said.append((sentence, step))

    live = LiveState()
    watch = RetentionWatch(ledger, live, clock=clock, outage_hours=12.0, say=say)
    since = clock.now()
    await watch.look()
    clock.advance(600)
    await watch.look()
    assert len(said) == 1
    sentence, step = said[0]
    assert sentence.startswith("NGRID is kept too short for an outage of 12 h: 4.0 GB hold 3.")
    assert "downburst feeds set 'NGRID' --retention-bytes" in step
    assert [(feed, it.since) for feed, it in live.retention_warnings.items()] == [("NGRID", since)]
    with ledger.transaction() as tx:
        tx.feeds.change(replace(tx.feeds.one("NGRID"), retention_bytes=80 * GB))
    await watch.look()
    assert live.retention_warnings == {}
    assert len(said) == 1
