"""The bounds on memory arenas, tested in a separate process because they apply to the whole process."""

import os
import platform
import subprocess
import sys

import pytest

from downburst.host.memory import bound_arenas

MANY_THREADS = """
import ctypes, threading
from downburst.host.memory import bound_arenas
{first}
together = threading.Barrier(6)
def work():
    together.wait()
    ctypes.CDLL(None).malloc(5_000)
    together.wait()
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
out = libc.fdopen(1, b"w")
libc.malloc_info(0, ctypes.c_void_p(out))
libc.fflush(ctypes.c_void_p(out))
"""
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")


@glibc
def test_all_threads_share_one_arena() -> None:
    assert arenas("assert bound_arenas()") == 1
    assert arenas("") > 1, "without the bound they share one as well: this test shows nothing"


def test_the_operator_s_own_choice_is_kept() -> None:
    assert not bound_arenas({"MALLOC_ARENA_MAX": "4"})
    assert not bound_arenas({"GLIBC_TUNABLES": "glibc.malloc.arena_max=4"})


def arenas(first: str) -> int:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    argv = [sys.executable, "-c", MANY_THREADS.format(first=first)]
    return subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout.count("<heap nr=")
