"""Other work on the same cores: processes that only compute."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_loops(per_core: int) -> Iterator[None]:
    """Run this many busy loops for every core; they end by themselves if this process is killed."""
    with loops_in_all(per_core * len(os.sched_getaffinity(0))):
        yield


@contextmanager
def loops_in_all(count: int) -> Iterator[None]:
    """Run this many busy loops; they end by themselves if this process is killed."""
    argv = ["timeout", LONGEST_S, "sh", "-c", "while :; do :; done"]
    loops = [subprocess.Popen(argv) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()
            loop.wait()


LONGEST_S = "180"
