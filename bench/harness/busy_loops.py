"""Other work on the same cores: processes that only compute."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_loops(per_core: int) -> Iterator[None]:
    """Run this many busy loops for every core; they end by themselves if this process is killed."""
    cores = len(os.sched_getaffinity(0))
    argv = ["timeout", LONGEST_S, "sh", "-c", "while :; do :; done"]
    loops = [subprocess.Popen(argv) for _ in range(per_core * cores)]
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()
            loop.wait()


LONGEST_S = "180"
