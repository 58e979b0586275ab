"""How this process takes memory from the system, and gives it back.

glibc gives each thread an arena of its own, up to eight for each core, and hands memory back from the top of an
arena alone. A process whose short-lived answers are made in a dozen threads so keeps a dozen times what one of them
needed at its worst, and keeps growing for as long as a new worst comes: without these bounds a hub went from 102 to
116 MB within 6,000 hostile sessions, of which its objects had two.
"""

import ctypes
import os
from collections.abc import Callable, Mapping
from contextlib import suppress


def bound_arenas(environment: Mapping[str, str] = os.environ) -> bool:
    """Has the threads of this process share one arena, and large blocks go back to the system at once.

    For processes that carry no product bytes. Returns whether it was done: not where the environment says how memory
    is to be taken (`MALLOC_...`, `GLIBC_TUNABLES`), nor with a C library that knows no such bounds, as musl.
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
"""glibc's own threshold at a start. It goes up by itself, to 32 MiB; one that is set stays."""
_BOUNDS = ((M_ARENA_MAX, 1), (M_MMAP_THRESHOLD, LARGE_BYTES), (M_TRIM_THRESHOLD, LARGE_BYTES))
