"""Kinds of damage to a file at rest."""

import random
from collections.abc import Callable
from pathlib import Path


def flip(path: Path) -> None:
    """One bit in the middle of the written part changes; the tail of zeros of a sparse file does not count."""
    content = bytearray(path.read_bytes())
    written = len(content.rstrip(b"\0")) or len(content)
    content = content or bytearray(1)
    content[written // 2] ^= 0x10
    _overwrite(path, bytes(content))


def cut(path: Path) -> None:
    """The second half is gone."""
    content = path.read_bytes()
    _overwrite(path, content[: len(content.rstrip(b"\0")) // 2])


def empty(path: Path) -> None:
    """The file exists and is empty."""
    _overwrite(path, b"")


def remove(path: Path) -> None:
    """The file is gone."""
    path.unlink()


def scramble(path: Path) -> None:
    """All bytes are replaced by as many others."""
    size = max(len(path.read_bytes().rstrip(b"\0")), 1)
    _overwrite(path, random.Random(str(path.name)).randbytes(size))


def _overwrite(path: Path, content: bytes) -> None:
    # In place: the file keeps its permissions, as it does on a failing disk.
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(content)


INJURIES: dict[str, Callable[[Path], None]] = {
    "flipped": flip,
    "cut": cut,
    "emptied": empty,
    "removed": remove,
    "scrambled": scramble,
}
"""By the names that the catalogue of stored files uses."""
