"""A directory that one process can no longer write, as on a disk that the kernel turned read-only."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def read_only(pid: int, directory: Path) -> Iterator[None]:
    """Makes a directory read-only for one process, which was started with `OWN_MOUNTS`."""
    inside = ["nsenter", "--target", str(pid), "--mount"]
    _run([*inside, "mount", "--bind", str(directory), str(directory)])
    try:
        _run([*inside, "mount", "-o", "remount,bind,ro", str(directory)])
        yield
    finally:
        _run([*inside, "umount", "--lazy", str(directory)])


def _run(argv: list[str]) -> None:
    subprocess.run(argv, check=True, timeout=30)


OWN_MOUNTS = ("unshare", "--mount", "--propagation", "private")
"""Before the arguments of a process that is to see mounts of its own."""
