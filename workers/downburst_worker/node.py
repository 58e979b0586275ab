"""The node as a child process: JSON lines in and out, answers as futures, restarted when it dies.

End of file on stdin is the child's order to stop, so that it can't outlive this process, however that ends.
"""

import asyncio
import json
import logging
import random
import signal
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from downburst.foundation.clock import Clock
from downburst.foundation.errors import DownburstError, Failure, NodeAway, from_node
from downburst.supervision import FAULTS, attempt, attempt_now, keep, start

Line = dict[str, Any]
Heard = Callable[[Line], None]


class NodeProcess:
    """Keeps one node running, and exchanges lines with it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        clock: Clock,
        on_ready: Callable[[], Awaitable[None]],
        on_event: Callable[[Line], Awaitable[None]],
        on_death: Callable[[str], Awaitable[None]],
        answer_s: float = 30.0,
    ) -> None:
        self._argv = tuple(argv)
        self._clock = clock
        self._on_ready = on_ready
        self._on_event = on_event
        self._on_death = on_death
        self._answer_s = answer_s
        self._process: asyncio.subprocess.Process | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._waiting: dict[int, _Waiting] = {}
        self._events: asyncio.Queue[Line] = asyncio.Queue(maxsize=EVENTS_WAITING)
        self._last_words: deque[str] = deque(maxlen=5)
        self._next_id = 0
        self._stopping = False
        self.restarts = 0
        self.running = False

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Starts the child and waits until it is ready; raises the cause if the first start fails."""
        first = asyncio.get_running_loop().create_future()
        self._supervisor = start("node.keeper", keep("node.keeper", partial(self._keep_or_fail, first)))
        await first

    def kill(self) -> None:
        """Ends a child that does not answer; another one is started."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def stop(self) -> None:
        """Ends the child by end of input, SIGTERM, then SIGKILL; returns when it is gone and its output was read."""
        self._stopping = True
        if self._process is not None:
            await _end(self._process)
            if self._supervisor is not None:
                await asyncio.wait([self._supervisor], timeout=2 * DRAIN_S)
        if self._supervisor is not None:
            self._supervisor.cancel()
            with suppress(asyncio.CancelledError):
                await self._supervisor

    async def ask(
        self, do: str, *, timeout_s: float | None = None, heard: Heard | None = None, **fields: object
    ) -> Line:
        """As `request`, but refused until the node has feeds and sites: a restarted one has none of them at first."""
        if not self.running:
            raise NodeAway("the node is not running; it is being restarted, try again in some seconds")
        return await self.request(do, timeout_s=timeout_s, heard=heard, **fields)

    async def request(
        self, do: str, *, timeout_s: float | None = None, heard: Heard | None = None, **fields: object
    ) -> Line:
        """Sends one job and waits for its answer; a refusal is raised as the corresponding error.

        Of a job with several answers, `heard` gets all but the last; each of them begins the timeout anew.
        """
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            raise NodeAway("the node is not running; it is being restarted, try again in some seconds")
        self._next_id += 1
        job = self._next_id
        limit_s = timeout_s or self._answer_s
        try:
            async with asyncio.timeout(limit_s) as limit:
                waiting = self._waiting[job] = _Waiting(limit, limit_s, heard)
                process.stdin.write(json.dumps({"id": job, "do": do, **fields}).encode() + b"\n")
                await process.stdin.drain()
                line = await waiting.last
        except TimeoutError:
            raise NodeAway(f"the node did not answer {do!r} in time; it may be overloaded, try again") from None
        except (ConnectionError, RuntimeError):
            raise NodeAway(f"the node ended before it accepted {do!r}; try again in some seconds") from None
        finally:
            self._waiting.pop(job, None)
        return _accepted(line)

    async def _keep_or_fail(self, first: asyncio.Future[None]) -> None:
        try:
            await self._keep(first)
        except Exception as error:
            _fail(first, Failure(f"the node can't be kept running ({type(error).__name__}); see the hub's log"))
            raise

    async def _keep(self, first: asyncio.Future[None]) -> None:
        backoff_s = FIRST_BACKOFF_S
        while not self._stopping:
            began = self._clock.monotonic_s()
            reason = await self._live_once(first)
            if self._stopping:
                return
            if not first.done() or first.cancelled():
                return
            if first.exception() is not None:
                return
            self.restarts += 1
            await self._on_death(reason)
            if self._clock.monotonic_s() - began > HEALTHY_S:
                backoff_s = FIRST_BACKOFF_S
            await asyncio.sleep(backoff_s * random.uniform(0.5, 1.5))  # noqa: S311
            backoff_s = min(backoff_s * 2, LAST_BACKOFF_S)

    async def _live_once(self, first: asyncio.Future[None]) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE_BYTES,
                start_new_session=True,
            )
        except OSError as error:
            reason = f"{self._argv[0]} can't be started: {error.strerror}"
            _fail(first, Failure(f"the node {reason}; check the setting `node` (DOWNBURST_NODE)"))
            return reason
        self._process = process
        tasks = [
            start("node.lines", keep("node.lines", partial(self._hear, process))),
            start("node.log", keep("node.log", partial(self._log, process))),
            start("node.events", keep("node.events", self._handle)),
        ]
        ready = start("node.ready", self._make_ready(process, first))
        try:
            await process.wait()
            await asyncio.wait(tasks[:2], timeout=DRAIN_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await self._events.join()
        finally:
            self._process = None
            self.running = False
            self._abandon()
            await _cancel([ready, *tasks])
            if process.returncode is None:
                process.kill()
        return self._cause_of_death(process, first)

    async def _make_ready(self, process: asyncio.subprocess.Process, first: asyncio.Future[None]) -> None:
        try:
            async with asyncio.timeout(READY_S):
                await self._on_ready()
        except Exception as unknown:  # noqa: BLE001
            error = _why_not_ready(unknown)
            if not isinstance(error, NodeAway):
                self._last_words.append(error.sentence)
                _fail(first, error)
            # Without its start and settings the child is of no use: it is restarted.
            await _end(process)
            return
        self.running = True
        if not first.done():
            first.set_result(None)

    def _cause_of_death(self, process: asyncio.subprocess.Process, first: asyncio.Future[None]) -> str:
        words = f": {self._last_words[-1]}" if self._last_words else ""
        code = process.returncode or 0
        if code == -signal.SIGKILL:
            # SIGKILL leaves no time for last words; the last line logged before is no cause.
            words = ": a user killed it, or the system did for lack of memory (dmesg)"
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        reason = f"the node ended {how}{words}"
        _fail(first, Failure(f"{reason}; correct this and start the hub again"))
        return reason

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            return
        async for raw in _lines_of(process.stdout, "node.line"):
            attempt_now("node.line", partial(self._line, raw), what=f"the line {raw!r:.150}")

    def _line(self, raw: bytes) -> None:
        line = json.loads(raw)
        if not isinstance(line, dict):
            raise TypeError("a line of the node is not a JSON object")
        answered = line.get("answer")
        if answered is None:
            self._queue(line)
            return
        waiting = self._waiting.get(answered)
        if waiting is not None:
            waiting.take(line)

    def _queue(self, line: Line) -> None:
        try:
            self._events.put_nowait(line)
        except asyncio.QueueFull:
            _LOG.error("event %s of the node dropped: %d are waiting", line.get("event"), EVENTS_WAITING)

    async def _handle(self) -> None:
        while True:
            line = await self._events.get()
            try:
                await attempt("node.event", partial(self._on_event, line), what=f"the line {line!r:.150}")
            except DownburstError as error:
                _LOG.warning("event %s of the node: %s", line.get("event"), error.sentence)
            finally:
                self._events.task_done()

    async def _log(self, process: asyncio.subprocess.Process) -> None:
        if process.stderr is None:
            return
        async for raw in _lines_of(process.stderr, "node.log-line"):
            text = raw.decode(errors="replace").rstrip()
            if text:
                self._last_words.append(text[:LONGEST_WORDS])
                _LOG.info("%s", text)

    def _abandon(self) -> None:
        for waiting in self._waiting.values():
            if not waiting.last.done():
                waiting.last.set_exception(NodeAway("the node ended before it answered; try again in some seconds"))


class _Waiting:
    """A job that is not answered yet."""

    def __init__(self, limit: asyncio.Timeout, limit_s: float, heard: Heard | None) -> None:
        self._limit, self._limit_s, self._heard = limit, limit_s, heard
        self.last: asyncio.Future[Line] = asyncio.get_running_loop().create_future()

    def take(self, line: Line) -> None:
        """Takes an answer, of which a job may have several."""
        if self._heard is not None and line.get("more") is True:
            if not self._limit.expired():
                self._limit.reschedule(asyncio.get_running_loop().time() + self._limit_s)
            self._heard(line)
        elif not self.last.done():
            self.last.set_result(line)


async def _lines_of(stream: asyncio.StreamReader, handler: str) -> AsyncIterator[bytes]:
    """Lines until the end of the stream; one above the limit is set aside, and counted.

    Reading must go on: a node blocks once the pipe is full.
    """
    while True:
        try:
            raw = await stream.readline()
        except ValueError as error:
            FAULTS.caught(handler, error, f"a line longer than {LONGEST_LINE_BYTES} bytes")
            continue
        if not raw:
            return
        yield raw


def _accepted(line: Line) -> Line:
    if line.get("ok") is True:
        return line
    raise from_node(str(line.get("code", "")), str(line.get("error", "the node refused")), line.get("position"))


def _why_not_ready(error: Exception) -> DownburstError:
    if isinstance(error, DownburstError):
        return error
    if isinstance(error, TimeoutError):
        return NodeAway(f"the node did not accept its feeds, sites and plans within {READY_S:g} s")
    FAULTS.caught("node.ready", error)
    return Failure(f"the node could not be given its feeds, sites and plans ({type(error).__name__})")


def _fail(first: asyncio.Future[None], error: DownburstError) -> None:
    if not first.done():
        first.set_exception(error)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    for last_resort in (process.terminate, process.kill):
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await process.wait()
            return
        with suppress(ProcessLookupError):
            last_resort()
    await process.wait()


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


_LOG = logging.getLogger("downburst.node")
FIRST_BACKOFF_S = 0.25
LAST_BACKOFF_S = 15.0
HEALTHY_S = 60.0
STOP_S = 8.0
READY_S = 50.0
"""Limit for all jobs before a node counts as running: a hub starts within a minute, or reports why not."""
DRAIN_S = 2.0
EVENTS_WAITING = 10_000
LONGEST_LINE_BYTES = 16 * 1024 * 1024
LONGEST_WORDS = 1_000
