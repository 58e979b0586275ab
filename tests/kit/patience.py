"""Waits of tests for events: their length follows the processor time that the machine gave, not the wall clock."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(what: str, probe: Callable[[], T | None], seconds: float = 30.0) -> T:
    """Waits until ``probe`` returns something true; fails after ``seconds`` without it.

    The seconds are those of a machine with a spare core. Where several processes share a core, each is slower by a
    factor, and the wait is longer by it. While the test itself was stalled, the awaited process was stalled too.
    """
    left_s, give_up_s = seconds, time.monotonic() + seconds * _LONGEST_STRETCH
    while True:
        began_s = time.monotonic()
        value = probe()
        if value:
            return value
        assert min(left_s, give_up_s - began_s) > 0, f"no {what} within {seconds} s"
        time.sleep(_POLL_S)
        left_s -= min(time.monotonic() - began_s, _LONGEST_POLL_S) / _processes_per_core()


def _processes_per_core() -> float:
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


_POLL_S = 0.02

# A poll that took longer was not scheduled, or looked at many files.
_LONGEST_POLL_S = 0.1

# A test whose condition never holds must still end.
_LONGEST_STRETCH = 10.0
