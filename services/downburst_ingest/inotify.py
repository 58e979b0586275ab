"""Complete files below a directory, as the kernel tells of them: closed after writing, or renamed into place.

Libraries that watch directories in a portable way report that a file changed, which is too early. Linux tells exactly
when a writer closed a file; three calls of the C library are all it takes.
"""

import asyncio
import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

from downburst.errors import Failure


class CompleteFiles:
    """Watches a tree; iterate to receive the path of each file that is complete, first those that lie there already.

    A path may come more than once (the tree is read again when the kernel's queue overflows), and the file may be
    gone when it is looked at. `ignored` says which directories and files, relative to the tree, are left alone.
    """

    def __init__(self, tree: Path, *, ignored: Callable[[Path], bool]) -> None:
        self._tree = tree
        self._ignored = ignored
        self._watched: dict[int, Path] = {}
        self._descriptor = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1")

    def close(self) -> None:
        """Gives the kernel's watches back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    async def __aiter__(self) -> AsyncIterator[Path]:
        for path in self._watch_and_list(self._tree):
            yield path
        while True:
            await _readable(self._descriptor)
            for mask, path in self._events():
                for complete in self._complete(mask, path):
                    yield complete

    def _events(self) -> Iterator[tuple[int, Path]]:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        offset = 0
        while offset < len(data):
            watch, mask, _cookie, name_bytes = _EVENT.unpack_from(data, offset)
            offset += _EVENT.size
            name = data[offset : offset + name_bytes].rstrip(b"\0")
            offset += name_bytes
            if mask & _OVERFLOW:
                yield mask, self._tree
            elif mask & _GONE:
                self._watched.pop(watch, None)
            elif watch in self._watched:
                yield mask, self._watched[watch] / os.fsdecode(name)

    def _complete(self, mask: int, path: Path) -> Iterator[Path]:
        if mask & _OVERFLOW:
            yield from self._watch_and_list(self._tree)
        elif self._ignored(path.relative_to(self._tree)):
            return
        elif mask & _DIRECTORY:
            yield from self._watch_and_list(path)
        elif mask & (_CLOSED_AFTER_WRITING | _MOVED_INTO):
            yield path

    def _watch_and_list(self, directory: Path) -> Iterator[Path]:
        """Watches first and lists then, so that a file that comes meanwhile is seen at least once."""
        watch = _libc.inotify_add_watch(self._descriptor, os.fsencode(directory), _WANTED)
        if watch < 0:
            self._refuse_unless_gone(directory)
            return
        self._watched[watch] = directory
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                path = directory / entry.name
                if self._ignored(path.relative_to(self._tree)):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._watch_and_list(path)
                elif entry.is_file(follow_symlinks=False) and not open_for_writing(path):
                    yield path

    def _refuse_unless_gone(self, directory: Path) -> None:
        code = ctypes.get_errno()
        if code in (errno.ENOENT, errno.ENOTDIR):
            return
        hint = "; raise fs.inotify.max_user_watches" if code == errno.ENOSPC else "; check its rights"
        raise Failure(f"the directory {directory} can't be watched ({os.strerror(code)}){hint}")


def open_for_writing(path: Path) -> bool:
    """Whether some process has the file open for writing: the kernel grants no read lease on such a file.

    Where leases are not to be had (network file systems, files of other users), the answer is no.
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


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def _checked(result: int, call: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise Failure(f"{call} failed ({os.strerror(code)}); raise fs.inotify.max_user_instances")
    return result


_libc = ctypes.CDLL(None, use_errno=True)
_EVENT = struct.Struct("iIII")
_READ_BYTES = 65_536
_CLOSED_AFTER_WRITING = 0x8
_MOVED_INTO = 0x80
_CREATED = 0x100
_OVERFLOW = 0x4000
_GONE = 0x8000
_ONLY_DIRECTORIES = 0x0100_0000
_NO_SYMLINKS = 0x0200_0000
_DIRECTORY = 0x4000_0000
_WANTED = _CLOSED_AFTER_WRITING | _MOVED_INTO | _CREATED | _ONLY_DIRECTORIES | _NO_SYMLINKS
