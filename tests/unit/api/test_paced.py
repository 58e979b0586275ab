"""An expensive reading is not repeated for every reader."""

import asyncio
import threading

import pytest

from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import NotFound
from downburst.ledger import Ledger, Transaction
from downburst_api.overview import readings as paced
from downburst_api.overview.readings import Paced


async def test_what_is_cheap_is_always_fresh(ledger: Ledger, clock: FakeClock) -> None:
    values = iter(range(10))
    reading: Paced[int] = Paced(ledger, clock)
    assert [await reading.read(lambda _tx: next(values)) for _ in range(3)] == [0, 1, 2]


async def test_what_costs_much_is_read_behind_the_readers_back_and_seldom(
    ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paced, "CHEAP_S", 0.0)
    begun, may_end, count = threading.Event(), threading.Event(), iter(range(10))

    def work(_tx: Transaction) -> int:
        begun.set()
        assert may_end.wait(60)
        return next(count)

    reading: Paced[int] = Paced(ledger, clock)
    waiting = [asyncio.create_task(reading.read(work)) for _ in range(3)]
    await asyncio.to_thread(begun.wait, 60)
    waiting[0].cancel()
    may_end.set()
    assert await asyncio.gather(*waiting[1:]) == [0, 0]
    assert await reading.read(work) == 0
    may_end.clear()
    begun.clear()
    clock.advance(3600)
    assert await reading.read(work) == 0
    await asyncio.to_thread(begun.wait, 60)
    assert await reading.read(work) == 0
    may_end.set()
    ended = [task for task in asyncio.all_tasks() if task.get_name() == "api.paced-reading"]
    await asyncio.wait(ended, timeout=60)
    assert await reading.read(work) == 1


async def test_a_failure_is_told_and_the_next_reader_asks_again(ledger: Ledger, clock: FakeClock) -> None:
    reading: Paced[str] = Paced(ledger, clock)
    with pytest.raises(NotFound):
        await reading.read(lambda tx: tx.feeds.one("NGRID").name)
    assert await reading.read(lambda _tx: "there") == "there"


async def test_an_unknown_error_goes_to_the_reader_and_the_next_one_reads(ledger: Ledger, clock: FakeClock) -> None:
    def fail(_tx: object) -> str:
        raise KeyError("x")

    reading: Paced[str] = Paced(ledger, clock)
    with pytest.raises(KeyError):
        await reading.read(fail)
    assert await reading.read(lambda _tx: "there") == "there"
