"""Tasks and threads never fail silently, and loops continue after errors."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest

from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyRunning, Failure, LedgerAway
from downburst.supervision import (
    FAULTS,
    HandlerFault,
    attempt,
    faults,
    hear_the_loop,
    keep,
    side_by_side,
    start,
    start_thread,
    tasks,
)
from downburst.supervision.faults import Faults


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(tasks, "LONGEST_WAIT_S", 0.0)


async def test_an_unknown_error_sets_one_item_aside_and_is_counted() -> None:
    async def work(number: int) -> int:
        return 12 // number

    done = [await attempt("test.item", partial(work, one), what=f"item {one}") for one in (3, 0, 4)]
    assert done == [4, None, 3]
    (fault,) = FAULTS.all()
    assert (fault.handler, fault.count, fault.what) == ("test.item", 1, "item 0")
    assert "ZeroDivisionError" in fault.sentence


async def test_a_refusal_goes_to_whoever_asked() -> None:
    async def refuse() -> None:
        raise Failure("no")

    with pytest.raises(Failure):
        await attempt("test.item", refuse)
    assert FAULTS.all() == []


async def test_a_loop_goes_on_after_errors_of_every_kind() -> None:
    rounds: list[Exception | None] = [ValueError("a"), LedgerAway("b"), None, MemoryError(), KeyError("c"), None]
    done = asyncio.Event()

    async def work() -> None:
        if not rounds:
            done.set()
            await asyncio.Event().wait()
        if (error := rounds.pop(0)) is not None:
            raise error

    loop = start("test.loop", keep("test.loop", work, every_s=0))
    async with asyncio.timeout(20):
        await done.wait()
    loop.cancel()
    assert [fault.count for fault in FAULTS.all()] == [3]


async def test_a_refusal_may_end_a_loop() -> None:
    async def work() -> None:
        raise AlreadyRunning("another one")

    async def ends(error: Exception) -> None:
        raise error

    with pytest.raises(AlreadyRunning):
        await keep("test.loop", work, refused=ends)


async def test_a_task_that_nobody_waits_for_is_heard() -> None:
    async def die() -> None:
        raise RuntimeError("unheard")

    task = start("test.task", die())
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert [fault.error for fault in FAULTS.all()] == ["RuntimeError: unheard"]


async def test_an_unknown_error_of_a_callback_is_counted() -> None:
    def fail() -> None:
        raise RuntimeError("unheard")

    loop = asyncio.get_running_loop()
    hear_the_loop()
    loop.call_soon(fail)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    loop.set_exception_handler(None)
    assert [(fault.handler, fault.error) for fault in FAULTS.all()] == [("loop.callback", "RuntimeError: unheard")]


async def test_a_thread_that_fails_is_heard_and_begins_again() -> None:
    rounds = [0, 0, 1]
    thread = start_thread("test.thread", lambda: 1 // rounds.pop(0))
    await asyncio.to_thread(thread.join, 20)
    assert [(fault.handler, fault.count) for fault in FAULTS.all()] == [("test.thread", 2)]


async def test_side_by_side_ends_all_with_the_first_that_fails() -> None:
    ended = asyncio.Event()

    async def stays() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def fails() -> None:
        await asyncio.sleep(0)
        raise Failure("no")

    with pytest.raises(Failure):
        await side_by_side(stays(), fails())
    assert ended.is_set()


def test_a_flood_of_errors_is_bounded_in_words_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    record = Faults(clock)
    heard: list[HandlerFault] = []
    end = record.listen(heard.append)
    for number in range(1000):
        record.caught("test.flood", ValueError("x" * 10_000), "y" * 10_000 + str(number))
    clock.advance(61)
    record.caught("test.flood", ValueError("again"))
    end()
    assert (record.all()[0].count, len(heard), len(caplog.records)) == (1001, 2, 2)
    assert len(heard[0].sentence) < 600
    assert record.recent(clock.now()) == record.all()
    assert record.recent(clock.now() + faults.HOLDS + timedelta(seconds=1)) == []
