"""Long-running work: every task and thread of the hub's processes starts here, so none dies unnoticed.

There are two kinds of errors. A `DownburstError` is an expected refusal: the caller handles it. Any other exception
is unexpected: the handler sets aside the one line, batch, receiver, circuit or round that it worked on, the error is
counted under the handler's name in `FAULTS`, and an alarm is raised.
"""

from downburst.supervision.faults import FAULTS, HandlerFault
from downburst.supervision.tasks import (
    attempt,
    attempt_now,
    call,
    hear_the_loop,
    keep,
    side_by_side,
    start,
    start_thread,
)

__all__ = [
    "FAULTS",
    "HandlerFault",
    "attempt",
    "attempt_now",
    "call",
    "hear_the_loop",
    "keep",
    "side_by_side",
    "start",
    "start_thread",
]
