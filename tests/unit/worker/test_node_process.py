"""The node as a child: answers, refusals, deaths, restarts and ends, against the fake node."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from downburst.foundation.clock import SystemClock
from downburst.foundation.errors import BadInput, BadPattern, Failure, NodeAway
from downburst.supervision import FAULTS, tasks
from downburst_worker import node as node_module
from downburst_worker.node import NodeProcess

FAKE = (sys.executable, str(Path(__file__).parents[2] / "kit" / "fake_node.py"))


class Told:
    def __init__(self, *, asks: bool = False) -> None:
        self.asks = asks
        self.node: NodeProcess | None = None
        self.events: list[dict[str, Any]] = []
        self.deaths: list[str] = []
        self.ready = 0
        self.changed = asyncio.Event()

    async def on_ready(self) -> None:
        if self.asks and self.node is not None:
            await self.node.request("status")
        self.ready += 1
        self.changed.set()

    async def on_event(self, line: dict[str, Any]) -> None:
        self.events.append(line)
        self.changed.set()
        if line.get("event") == "confusing":
            raise KeyError("nothing that was expected")

    async def on_death(self, reason: str) -> None:
        self.deaths.append(reason)
        self.changed.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not reached():
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def running(told: Told, *argv: str, answer_s: float = 20.0) -> AsyncIterator[NodeProcess]:
    node = NodeProcess(
        argv or FAKE,
        clock=SystemClock(),
        on_ready=told.on_ready,
        on_event=told.on_event,
        on_death=told.on_death,
        answer_s=answer_s,
    )
    told.node = node
    try:
        await node.start()
        yield node
    finally:
        await node.stop()


async def test_answers_find_their_questions_whatever_their_order() -> None:
    async with running(Told()) as node:
        asked = [node.request("check-pattern", pattern="a" * length) for length in range(50)]
        assert all(answer["ok"] for answer in await asyncio.gather(*asked))


ANSWERS_IN_PARTS = """
import json, sys
for text in sys.stdin:
    job = json.loads(text)
    for left in range(job.get("parts", 1) - 1, -1, -1):
        line = {"answer": job["id"], "ok": True, "left": left} | ({"more": True} if left else {})
        print(json.dumps(line), flush=True)
    if job["do"] == "hangs":
        print(json.dumps({"answer": job["id"], "ok": True, "more": True}), flush=True)
"""


@asynccontextmanager
async def in_parts() -> AsyncIterator[NodeProcess]:
    async with running(Told(), sys.executable, "-c", ANSWERS_IN_PARTS) as node:
        yield node


async def test_a_job_may_have_several_answers_of_which_the_last_is_returned() -> None:
    heard = list[dict[str, Any]]()
    async with in_parts() as node:
        last, other = await asyncio.gather(node.ask("fetch", parts=3, heard=heard.append), node.ask("status"))
    assert [line["left"] for line in heard] == [2, 1]
    assert (last["left"], other["left"]) == (0, 0)
    assert not node._waiting


async def test_an_answer_that_can_not_be_used_costs_no_later_one() -> None:
    lefts = list[int]()

    def heard(line: dict[str, Any]) -> None:
        lefts.append(line["left"])
        raise KeyError(line["left"])

    async with in_parts() as node:
        assert (await node.ask("fetch", parts=3, heard=heard))["left"] == 0
    assert lefts == [2, 1]
    assert {fault.handler for fault in FAULTS.all()} == {"node.line"}


async def test_each_of_several_answers_begins_the_timeout_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = list[float | None]()
    reschedule = asyncio.Timeout.reschedule

    def seen(limit: asyncio.Timeout, when: float | None) -> None:
        moved.append(when)
        reschedule(limit, when)

    monkeypatch.setattr(asyncio.Timeout, "reschedule", seen)
    heard = asyncio.Event()
    async with in_parts() as node:
        moved.clear()
        asking = asyncio.create_task(node.ask("hangs", parts=0, heard=lambda _line: heard.set()))
        await heard.wait()
        begun, again = moved
        asking.cancel()
    assert begun is not None
    assert again is not None
    assert again > begun


async def test_a_refusal_is_raised_as_what_it_stands_for() -> None:
    async with running(Told()) as node:
        with pytest.raises(BadPattern) as refused:
            await node.request("check-pattern", pattern="a(b")
        assert refused.value.extra["position"] == 2
        with pytest.raises(BadInput, match="no job 'sing'"):
            await node.request("sing")


async def test_events_come_in_order_and_a_confusing_one_harms_no_other() -> None:
    told = Told()
    async with running(told) as node:
        for name in ("first", "confusing", "last"):
            await node.request("emit", line={"event": name})
        await told.until(lambda: len(told.events) == 3)
        assert [event["event"] for event in told.events] == ["first", "confusing", "last"]


async def test_an_event_that_no_handler_expects_is_set_aside_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()

    async def overflow(line: dict[str, Any]) -> None:
        told.events.append(line)
        told.changed.set()
        raise OverflowError("Python int too large to convert to SQLite INTEGER")

    monkeypatch.setattr(told, "on_event", overflow)
    async with running(told) as node:
        for number in range(3):
            await node.request("emit", line={"event": "batch", "number": number})
        await told.until(lambda: len(told.events) == 3)
        assert (await node.request("check-pattern", pattern="a"))["ok"]
    (fault,) = FAULTS.all()
    assert (fault.handler, fault.count) == ("node.event", 3)
    assert "'number': 2" in fault.what


@pytest.mark.parametrize("scrawl", ["no JSON", "[1, 2]", '"x"', "7", "{", "\u00e9" * 1_000])
async def test_a_line_that_is_none_is_set_aside_counted_and_the_others_are_heard(scrawl: str) -> None:
    told = Told()
    async with running(told) as node:
        await node.request("scrawl", text=scrawl, times=1, aloud=False)
        await node.request("emit", line={"event": "last"})
        await told.until(lambda: bool(told.events))
        assert (told.events, node.restarts) == ([{"event": "last"}], 0)
    (fault,) = FAULTS.all()
    assert (fault.handler, fault.count) == ("node.line", 1)


@pytest.mark.parametrize("aloud", [True, False])
async def test_a_line_longer_than_any_is_set_aside_and_the_node_is_read_on(
    *, aloud: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node stalls if its log is not read and the pipe is full; a million bytes exceed the pipe."""
    monkeypatch.setattr(node_module, "LONGEST_LINE_BYTES", 10_000)
    async with running(Told()) as node:
        for _ in range(3):
            await node.request("scrawl", text="x", times=1_000_000, aloud=aloud)
        await node.request("scrawl", text="what it said last", times=1, aloud=True)
        assert (await node.request("check-pattern", pattern="a"))["ok"]
        assert node.restarts == 0
    assert {fault.handler for fault in FAULTS.all()} <= {"node.line", "node.log-line"}
    (long,) = [one for one in FAULTS.all() if one.handler == ("node.log-line" if aloud else "node.line")]
    assert long.count >= 3


@pytest.mark.parametrize("handler", ["node.lines", "node.log", "node.events"])
async def test_a_task_of_the_node_that_dies_begins_again(handler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told, enter, armed = Told(), tasks._enter, {handler}

    def throw(entered: str, work: Callable[[], Any]) -> Any:
        if entered in armed:
            armed.remove(entered)
            raise RuntimeError("it dies")
        return enter(entered, work)

    monkeypatch.setattr(tasks, "_enter", throw)
    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.01)
    async with running(told) as node:
        await node.request("emit", line={"event": "after"})
        await told.until(lambda: bool(told.events))
        assert node.restarts == 0
    assert not armed
    assert [(fault.handler, fault.count) for fault in FAULTS.all()] == [(handler, 1)]


async def test_a_start_that_no_handler_expects_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()

    async def overflow() -> None:
        raise OverflowError

    monkeypatch.setattr(told, "on_ready", overflow)
    with pytest.raises(Failure, match=r"could not be given its feeds, sites and plans \(OverflowError\)"):
        async with running(told):
            pass
    assert [fault.handler for fault in FAULTS.all()] == ["node.ready"]


async def test_no_answer_in_time_is_said() -> None:
    async with running(Told(), answer_s=0.2) as node:
        with pytest.raises(NodeAway, match="did not answer 'hush' in time"):
            await node.request("hush")


async def test_a_cancellation_that_comes_with_the_answer_is_not_lost() -> None:
    """If the cancellation were lost, a stop of a task that asks the node would wait forever."""
    async with running(Told(), answer_s=60) as node:
        asking = asyncio.create_task(node.request("hush"))
        for _ in range(TICKS):
            await asyncio.sleep(0)
        node._waiting[max(node._waiting)].take({"ok": True})
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_killed_node_has_no_last_words() -> None:
    told = Told()
    async with running(told) as node:
        assert node.pid is not None
        os.kill(node.pid, signal.SIGKILL)
        await told.until(lambda: bool(told.deaths))
    (reason,) = told.deaths
    assert reason.startswith("the node ended by signal 9: a user killed it, or the system did for lack of memory")


async def test_a_node_that_dies_is_started_again_and_made_ready_again() -> None:
    told = Told()
    async with running(told) as node:
        first = node.pid
        with pytest.raises(NodeAway, match="ended before it answered"):
            await node.request("die", code=3)
        await told.until(lambda: told.ready == 2)
        assert told.deaths == ["the node ended with exit code 3: the fake node was told to die"]
        assert node.restarts == 1
        assert node.pid != first
        assert (await node.request("check-pattern", pattern="a"))["ok"]


async def test_asking_while_it_is_away_is_refused_at_once() -> None:
    told = Told()
    async with running(told) as node:
        with pytest.raises(NodeAway):
            await node.request("die")
        await told.until(lambda: bool(told.deaths))
        with pytest.raises(NodeAway, match="not running"):
            await node.request("status")


async def test_the_first_start_failing_is_raised_with_the_last_words() -> None:
    unlucky = "import sys; print('no such luck', file=sys.stderr); sys.exit(7)"
    with pytest.raises(Failure, match="exit code 7: no such luck"):
        async with running(Told(asks=True), sys.executable, "-c", unlucky):
            pass


async def test_a_binary_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="can't be started"):
        async with running(Told(), str(tmp_path / "none")):
            pass


async def test_stop_leaves_no_process() -> None:
    async with running(Told()) as node:
        pid = node.pid
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_last_words_of_a_node_are_heard() -> None:
    told = Told()
    program = "import sys; sys.stdin.read(); [print('{\"event\": %d}' % n) for n in range(2000)]"
    async with running(told, sys.executable, "-c", program):
        assert not told.events
    assert [event["event"] for event in told.events] == list(range(2000))


async def test_a_node_that_ignores_its_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_module, "STOP_S", 0.2)
    stubborn = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    async with running(Told(), sys.executable, "-c", stubborn) as node:
        pid = node.pid
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_lines_that_are_no_json_are_passed_over() -> None:
    told = Told()
    noise = "print('hello'); print('[1]'); print('{\"event\": \"sane\"}', flush=True); import sys; sys.stdin.read()"
    async with running(told, sys.executable, "-c", noise):
        await told.until(lambda: bool(told.events))
    assert told.events == [{"event": "sane"}]


TICKS = 100
"""Iterations of the event loop after which a request certainly waits for its answer."""
