"""Steps of a start. A step that waits for an external party is logged, and ends the process at its time limit.

A thread watches, not a task: a disk or a server that never answers may block the event loop, and the blocked thread
can't be ended. The kernel releases locks and the node's input.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Lock

from downburst.supervision.tasks import start_thread

Leave = Callable[[str], object]


def leave(sentence: str) -> None:
    """Ends the process with a sentence, even if its threads are blocked."""
    print(f"downburst: {sentence}", file=sys.stderr, flush=True)
    os._exit(1)


@contextmanager
def step(name: str, *, limit_s: float | None, leave: Leave = leave) -> Iterator[None]:
    """Encloses one step of a start, named by the thing that it waits for.

    `limit_s`: None for a change of schema, which has no time limit; it is logged like the others.
    """
    done, telling = Event(), Lock()
    start_thread(HANDLER, partial(_watch, name, done, telling, limit_s=limit_s, leave=leave))
    try:
        yield
    finally:
        # A notice that has begun is written before all that follows the step, such as the reason of a refusal.
        with telling:
            done.set()


def leave_after(seconds: float) -> None:
    """Ends the process after so many seconds, with code 0, unless it ended by itself: a stop was requested."""
    watch = partial(_watch, "steps in progress", Event(), Lock(), limit_s=seconds, leave=lambda _: os._exit(0))
    start_thread(HANDLER, watch)


def _watch(name: str, done: Event, telling: Lock, *, limit_s: float | None, leave: Leave) -> None:
    waited_s = 0.0
    while True:
        wait_s = NOTICE_S if limit_s is None else min(NOTICE_S, limit_s - waited_s)
        if done.wait(wait_s):
            return
        waited_s += wait_s
        with telling:
            if done.is_set():
                return
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
