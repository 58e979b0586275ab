"""File systems of a test's own: a file as the disk, or memory, mounted where the test wants it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from kit.capabilities import needs, skip


@contextmanager
def disk(image: Path, at: Path, kind: str, options: str = "") -> Iterator[Path]:
    """A disk with a file system of this kind (`xfs`, `ext4`), mounted for the length of the block."""
    needs("root")
    if which(f"mkfs.{kind}", path="/usr/sbin:/sbin:/usr/bin") is None:
        skip(f"mkfs.{kind} is not installed")
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    _run("mkfs." + kind, "-q", str(image))
    with _mounted(at, "-o", ",".join(filter(None, ("loop", options))), "-t", kind, str(image)):
        yield at


@contextmanager
def memory(at: Path) -> Iterator[Path]:
    """A file system in memory, mounted for the length of the block: another one than that of its parent."""
    needs("root")
    with _mounted(at, "-t", "tmpfs", "tmpfs"):
        yield at


@contextmanager
def _mounted(at: Path, *arguments: str) -> Iterator[None]:
    at.mkdir(parents=True, exist_ok=True)
    try:
        _run("mount", *arguments, str(at))
    except subprocess.CalledProcessError as error:
        skip(f"nothing can be mounted here: {error.stderr.strip()}")
    try:
        yield
    finally:
        _run("umount", "--lazy", str(at))


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)


DISK_BYTES = 400 << 20
"""Sparse; XFS refuses less than 300 MB."""
