"""Files with the bytes of products that go elsewhere: written when asked for, and kept for a while."""

import asyncio
import os
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from downburst.domain.bridges.exporting import ExportedFile

Key = tuple[str, str, int]
"""Feed, epoch and sequence."""
Export = Callable[[str, str, int, Path], Awaitable[ExportedFile]]


class ExportedFiles:
    """The files last asked for, up to a number of bytes: each product is soon asked for by every Global Cache."""

    def __init__(self, directory: Path, export: Export, *, most_bytes: int = 1 << 30) -> None:
        self._directory, self._export, self._most_bytes = directory, export, most_bytes
        self._held: OrderedDict[Key, ExportedFile] = OrderedDict()
        self._bytes = 0
        self._locks: dict[Key, asyncio.Lock] = {}
        self._is_ready = False

    async def of(self, key: Key) -> ExportedFile:
        """The file of a product, to be opened or linked before others follow; raises `NotKept`."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                held = self._held.get(key)
                if held is None or not held.path.exists():
                    held = await self._taken(key)
                self._held.move_to_end(key)
                return held
        finally:
            if not lock.locked():
                self._locks.pop(key, None)

    async def _taken(self, key: Key) -> ExportedFile:
        if not self._is_ready:
            await asyncio.to_thread(_emptied, self._directory)
            self._is_ready = True
        feed, epoch, sequence = key
        name = f"{sha256(feed.encode()).hexdigest()[:16]}-{epoch}-{sequence}-{secrets.token_hex(4)}"
        taken = await self._export(feed, epoch, sequence, self._directory / name)
        if key in self._held:
            self._drop(self._held.pop(key))
        self._held[key] = taken
        self._bytes += taken.product.size_bytes
        while self._bytes > self._most_bytes and len(self._held) > 1:
            self._drop(self._held.popitem(last=False)[1])
        return taken

    def _drop(self, held: ExportedFile) -> None:
        self._bytes -= held.product.size_bytes
        with suppress(OSError):
            held.path.unlink()


def _emptied(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for entry in os.scandir(directory):
        Path(entry.path).unlink(missing_ok=True)
