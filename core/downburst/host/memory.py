"""Memory management of this process: how it takes memory from the system, and returns it.

glibc gives each thread an arena of its own, up to eight for each core, and returns memory from the top of an arena
only. A process that builds short-lived answers in a dozen threads thus keeps a dozen times the peak of one of them,
and grows with each new peak: without these bounds a hub went from 102 to 116 MB within 6,000 hostile sessions, of
which its objects had two.
"""

import ctypes
import os
from collections.abc import Callable, Mapping
from contextlib import suppress


def bound_arenas(environment: Mapping[str, str] = os.environ) -> bool:
    """Makes the threads of this process share one arena, and large blocks return to the system immediately.

    For processes that carry no product bytes. Returns True if it was done: not if the environment configures memory
    allocation (`MALLOC_...`, `GLIBC_TUNABLES`), nor with a C library without such bounds, such as musl.
    """
    if _is_chosen(environment):
        return False
    with suppress(OSError, AttributeError):
        # From malloc.h: int mallopt(int param, int value); 1 is success.
        mallopt: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
        return all(mallopt(parameter, value) == 1 for parameter, value in _BOUNDS)
    return False


def _is_chosen(environment: Mapping[str, str]) -> bool:
    return any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in environment)


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""From glibc's malloc.h."""
LARGE_BYTES = 128 * 1024
"""glibc's own initial threshold. It rises by itself, to 32 MiB; an explicit one stays."""
_BOUNDS = ((M_ARENA_MAX, 1), (M_MMAP_THRESHOLD, LARGE_BYTES), (M_TRIM_THRESHOLD, LARGE_BYTES))
