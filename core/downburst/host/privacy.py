"""Keeps a hub's files private to its user: password hashes, keys, and a ledger that any reader could lock."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path


def make_private(directory: Path, *, apart: Path | None = None) -> int:
    """Closes a directory and everything in it to other users; logs what was open, and returns the number of entries.

    A directory that is already closed is not searched: nobody else can reach its contents. Everything below `apart`,
    where others are meant to leave files, stays as it is.
    """
    if stat.S_IMODE(directory.stat().st_mode) & OTHERS == 0:
        return 0
    way_in = apart is not None and directory in apart.resolve().parents
    # First, so that nothing is opened while the rest is closed. Execute permission alone shows no names.
    closed = int(_close(directory, keep=stat.S_IXGRP | stat.S_IXOTH if way_in else 0))
    closed += sum(_close(path) for path in _inside(directory, apart))
    if closed:
        _LOG.warning(
            "%s was open to other users of this machine, with %d files and directories in it; they are closed. "
            "If others could sign in here, let users choose new passwords, and make new tokens and credentials",
            directory,
            closed - 1,
        )
    return closed


def _inside(directory: Path, apart: Path | None) -> Iterator[Path]:
    for place, directories, files in os.walk(directory):
        if apart is not None:
            directories[:] = [name for name in directories if Path(place, name).resolve() != apart.resolve()]
        for name in (*directories, *files):
            yield Path(place, name)


def _close(path: Path, *, keep: int = 0) -> bool:
    """Removes the rights of others; a link is left alone, because its rights are those of its target."""
    try:
        found = path.lstat()
        mode = stat.S_IMODE(found.st_mode)
        wanted = mode & ~OTHERS | mode & keep
        if stat.S_ISLNK(found.st_mode) or mode == wanted:
            return False
        path.chmod(wanted)
    except FileNotFoundError:
        return False
    except OSError as error:
        _LOG.warning(
            "%s is open to other users of this machine and can't be closed (%s); chmod go= it", path, error.strerror
        )
        return False
    return True


_LOG = logging.getLogger("downburst.hub")
OTHERS = stat.S_IRWXG | stat.S_IRWXO
PRIVATE_UMASK = 0o077
"""For everything that a hub and its node create later."""
