"""Tasks and threads with counted unexpected errors, and loops that continue after one."""

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from downburst.foundation.errors import DownburstError, LedgerAway
from downburst.supervision.faults import FAULTS

T = TypeVar("T")
Refused = Callable[[DownburstError], Awaitable[None]]
"""A loop's reaction to an expected refusal."""


def start(handler: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Starts a task named after its handler; an unexpected error that ends it is counted, awaited or not."""
    task = asyncio.get_running_loop().create_task(work, name=handler)
    _KEPT.add(task)
    task.add_done_callback(_ended)
    return task


async def attempt(handler: str, work: Callable[[], Awaitable[T]], *, what: str = "") -> T | None:
    """Returns the result of `work`; None after an unexpected error: then `what` is set aside. Refusals are raised."""
    try:
        return await call(handler, work)
    except DownburstError:
        raise
    except Exception as error:  # noqa: BLE001
        FAULTS.caught(handler, error, what)
        return None


def attempt_now(handler: str, work: Callable[[], T], *, what: str = "") -> T | None:
    """Like `attempt`, for work that does not wait."""
    try:
        return call(handler, work)
    except DownburstError:
        raise
    except Exception as error:  # noqa: BLE001
        FAULTS.caught(handler, error, what)
        return None


async def keep(
    handler: str,
    work: Callable[[], Awaitable[object]],
    *,
    every_s: float | None = None,
    refused: Refused | None = None,
) -> None:
    """Runs `work` until it returns, or repeatedly with `every_s`; a failure is retried with growing intervals.

    Refusals go to `refused`, or else to the log; an error that `refused` raises ends the loop. So does cancelling.
    """
    wait_s = FIRST_WAIT_S
    while True:
        began_s = _now_s()
        try:
            await call(handler, work)
        except DownburstError as error:
            await (refused or _log(handler))(error)
        except Exception as error:  # noqa: BLE001
            FAULTS.caught(handler, error)
        else:
            if every_s is None:
                return
            wait_s = FIRST_WAIT_S
            await asyncio.sleep(every_s)
            continue
        if _now_s() - began_s > LONGEST_WAIT_S:
            wait_s = FIRST_WAIT_S
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, LONGEST_WAIT_S)


async def side_by_side(*works: Coroutine[Any, Any, object]) -> None:
    """Waits until all have ended, or one fails: then the others are cancelled and its error is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def start_thread(handler: str, work: Callable[[], object]) -> threading.Thread:
    """Starts a daemon thread; an unexpected error is counted, and the work starts again."""

    def guarded() -> None:
        while True:
            try:
                call(handler, work)
            except Exception as error:  # noqa: BLE001
                FAULTS.caught(handler, error)
            else:
                return
            time.sleep(FIRST_WAIT_S)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(guarded,), name=handler, daemon=True)
    thread.start()
    return thread


def call(handler: str, work: Callable[[], T]) -> T:
    """Enters a handler."""
    return _enter(handler, work)


def _enter(_handler: str, work: Callable[[], T]) -> T:
    """The only entry to every handler; tests raise errors here, under the handler's name."""
    return work()


def hear_the_loop() -> None:
    """Counts errors of the event loop's own callbacks too, which belong to no task."""
    loop = asyncio.get_running_loop()

    def heard(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception) and not isinstance(error, DownburstError):
            FAULTS.caught("loop.callback", error, str(context.get("message", "")))
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(heard)


def _ended(task: asyncio.Task[Any]) -> None:
    _KEPT.discard(task)
    if task.cancelled():
        return
    error = task.exception()
    if isinstance(error, Exception) and not isinstance(error, DownburstError):
        FAULTS.caught(task.get_name(), error)


def _log(handler: str) -> Refused:
    async def log(error: DownburstError) -> None:
        # The watcher of the ledger reports an outage once for all.
        level = logging.INFO if isinstance(error, LedgerAway) else logging.WARNING
        _LOG.log(level, "%s is retried: %s", handler, error.sentence)

    return log


def _now_s() -> float:
    return asyncio.get_running_loop().time()


_LOG = logging.getLogger("downburst.supervision")
_KEPT: set[asyncio.Task[Any]] = set()
"""The event loop holds tasks by weak references only."""
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 10.0
