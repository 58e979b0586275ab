"""Disk space: a reserve for a start on a full disk, and proof that there is room for a product."""

import errno
import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path

from downburst.foundation.errors import DiskFull, NotWritable

_LOG = logging.getLogger("downburst.disk")


class Reserve:
    """A file that only takes space: released when a start finds none, made again when there is plenty."""

    def __init__(self, directory: Path, size_bytes: int) -> None:
        self._path = directory / "reserve"
        self._size_bytes = size_bytes

    def give_up_if_full(self) -> bool:
        """Before a start: frees the reserve if the disk has less space than it; returns True if space was freed."""
        with suppress(OSError):
            if shutil.disk_usage(self._path.parent).free < max(self._size_bytes, LEAST_BYTES):
                held = self._path.stat().st_size
                self._path.unlink()
                if held:
                    _LOG.warning("the disk of %s is full: its reserve of %d bytes was released", self._path, held)
                return held > 0
        return False

    def hold(self) -> None:
        """Makes the file if it is missing and the disk has four times its size free."""
        if self._size_bytes == 0:
            self._path.unlink(missing_ok=True)
            return
        with suppress(OSError):
            if self._path.exists() and self._path.stat().st_size == self._size_bytes:
                return
            if shutil.disk_usage(self._path.parent).free < PLENTY * self._size_bytes:
                return
            with self._path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, self._size_bytes)


def prove_room(directory: Path) -> None:
    """Allocates the room of a product without writing it, and frees it; raises if there is none. Blocks."""
    path = directory / ".probe"
    try:
        free = shutil.disk_usage(directory).free
        if free < LEAST_BYTES:
            raise DiskFull(f"the disk of {directory} is full: {free:,} bytes are left; free some space")
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, ROOM_BYTES)
    except OSError as error:
        kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else NotWritable
        raise kind(
            f"nothing can be stored in {directory} ({error.strerror}); free some space or repair the disk"
        ) from None
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


PLENTY = 4
LEAST_BYTES = 4_000_000
"""Written by a hub while it starts: the ledger's journal, a sequence of each feed, a token."""
ROOM_BYTES = 256 * 1024
"""More than the last free blocks of a full disk."""
