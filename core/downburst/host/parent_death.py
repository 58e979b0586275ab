"""Becomes another program that ends with its parent: `python tether.py PARENT_PID PROGRAM ARGUMENT...`.

The demonstration and a fleet start every child through this file, so that no process is left behind even when they
are killed. It runs without the package, as a bare file, to start quickly.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence


def bound_to_parent(argv: Sequence[str]) -> list[str]:
    """The command that starts `argv` as a child of this process, and ends with it."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *argv]


def main(argv: list[str]) -> None:
    """Requests SIGTERM from the kernel at the parent's death, then replaces this process."""
    parent, program = int(argv[1]), argv[2:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(program[0], program)  # noqa: S606 - the parent names the program


PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    main(sys.argv)
