"""Steps of a start. A step that waits for somebody else is logged while it waits, and ends the process at its limit.

A thread watches, not a task: a disk or a server that never answers may hold up the event loop, and the thread that
waits for it can't be ended. Locks and the node's input are the kernel's to let go of.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event

from downburst.supervision.tasks import start_thread

Leave = Callable[[str], object]


def leave(sentence: str) -> None:
    """Ends the process with a sentence, whatever its threads wait for."""
    print(f"downburst: {sentence}", file=sys.stderr, flush=True)
    os._exit(1)


@contextmanager
def step(name: str, *, limit_s: float | None, leave: Leave = leave) -> Iterator[None]:
    """Around one step of a start, named by what is waited for.

    `limit_s`: None for a change of schema, which takes as long as it takes; it is logged like the others.
    """
    done = Event()
    start_thread(HANDLER, partial(_watch, name, done, limit_s=limit_s, leave=leave))
    try:
        yield
    finally:
        done.set()


def leave_after(seconds: float) -> None:
    """Ends the process so many seconds from now, with code 0, unless it has ended by itself: a stop was asked for."""
    watch = partial(_watch, "steps in progress", Event(), limit_s=seconds, leave=lambda _: os._exit(0))
    start_thread(HANDLER, watch)


def _watch(name: str, done: Event, *, limit_s: float | None, leave: Leave) -> None:
    waited_s = 0.0
    while True:
        wait_s = NOTICE_S if limit_s is None else min(NOTICE_S, limit_s - waited_s)
        if done.wait(wait_s):
            return
        waited_s += wait_s
        if limit_s is not None and waited_s >= limit_s:
            leave(
                f"the start waited {limit_s:g} s for one step ({name}) and ends; remove the obstacle and start "
                "again; the setting start_step_s limits the time of a step"
            )
            return
        _LOG.warning("the start has waited %g s for one step (%s)", waited_s, name)


HANDLER = "start.step"
NOTICE_S = 10.0
_LOG = logging.getLogger("downburst.supervision")
