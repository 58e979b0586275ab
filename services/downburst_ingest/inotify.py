"""Complete files below a directory, as reported by the kernel: closed after writing, or renamed into place.

Portable libraries that watch directories report a file's change, which is too early. Linux reports exactly the moment
at which a writer closed a file.
"""

import errno
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

from asyncinotify import Event, Inotify, Mask

from downburst.foundation.errors import Failure


class CompleteFiles:
    """Watches a tree; iterate to receive the path of each complete file, starting with existing ones.

    A path may be reported more than once (the tree is read again when the kernel's queue overflows), and the file may
    be gone by then. `ignored` selects directories and files, relative to the tree, to leave alone.
    """

    def __init__(self, tree: Path, *, ignored: Callable[[Path], bool]) -> None:
        self._tree = tree
        self._ignored = ignored
        try:
            self._inotify = Inotify(cache_size=EVENTS_AT_ONCE)
        except OSError as error:
            raise Failure(f"inotify_init1 failed ({error.strerror}); raise fs.inotify.max_user_instances") from error

    def close(self) -> None:
        """Releases the kernel's watches."""
        self._inotify.close()

    async def __aiter__(self) -> AsyncIterator[Path]:
        for path in self._watch_and_list(self._tree):
            yield path
        while True:
            for complete in self._complete(await self._inotify.get()):
                yield complete

    def _complete(self, event: Event) -> Iterator[Path]:
        path = event.path
        if Mask.Q_OVERFLOW in event:
            yield from self._watch_and_list(self._tree)
        elif Mask.IGNORED in event or path is None or self._ignored(path.relative_to(self._tree)):
            return
        elif Mask.ISDIR in event:
            yield from self._watch_and_list(path)
        elif event.mask & (Mask.CLOSE_WRITE | Mask.MOVED_TO):
            yield path

    def _watch_and_list(self, directory: Path) -> Iterator[Path]:
        """Watches first and lists then, so that a file created in between is seen at least once."""
        try:
            # A directory moved within the tree keeps its watch, and has a new path.
            self._inotify.add_watch(directory, WANTED).path = directory
        except OSError as error:
            self._refuse_unless_gone(directory, error)
            return
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                path = directory / entry.name
                if self._ignored(path.relative_to(self._tree)):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._watch_and_list(path)
                elif entry.is_file(follow_symlinks=False) and not open_for_writing(path):
                    yield path

    def _refuse_unless_gone(self, directory: Path, error: OSError) -> None:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return
        hint = "; raise fs.inotify.max_user_watches" if error.errno == errno.ENOSPC else "; check its rights"
        raise Failure(f"the directory {directory} can't be watched ({error.strerror}){hint}") from error


def open_for_writing(path: Path) -> bool:
    """True if some process has the file open for writing: the kernel grants no read lease on such a file.

    Where leases are unavailable (network file systems, other users' files), the answer is no.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)
    return False


WANTED = Mask.CLOSE_WRITE | Mask.MOVED_TO | Mask.CREATE | Mask.ONLYDIR | Mask.DONT_FOLLOW
EVENTS_AT_ONCE = 240
"""64 KiB with the longest names, the size of one read."""
