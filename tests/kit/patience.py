"""How long a test waits for what must come: by what the machine gave it, not by the clock on the wall."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(what: str, probe: Callable[[], T | None], seconds: float = 30.0) -> T:
    """Waits until ``probe`` returns something true; fails after ``seconds`` without it.

    The seconds are those of a machine with a core to spare. Where several processes share a core each is as much
    slower, so the wait is as much longer; and while the test itself stood still, so did what it waits for.
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

# A test that waits in vain ends nevertheless.
_LONGEST_STRETCH = 10.0
