"""What runs for long: every task and thread of the hub's processes begins here, so none dies unheard.

Two kinds of errors are told apart. A `DownburstError` is a refusal that somebody foresaw: whoever calls knows what to
do about it. Every other exception is one that no handler expected: it sets aside the one line, batch, receiver,
circuit or round that was worked on, is counted under the handler's name in `FAULTS`, and raises an alarm.
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
