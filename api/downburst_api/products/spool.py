"""The body of an upload, streamed into a spool file: bounded, hashed, never kept incomplete."""

import asyncio
import errno
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from fastapi import Request
from starlette.requests import ClientDisconnect

from downburst.foundation.errors import DiskFull, NotWritable, TooLarge, TruncatedUpload


async def spool(request: Request, path: Path, *, limit_bytes: int, idle_s: float) -> "hashlib._Hash":
    """Writes the body to a file; returns its hash, updated with every byte."""
    announced = _content_length(request.headers.get("content-length"))
    if announced is not None and announced > limit_bytes:
        raise _too_large(limit_bytes)
    received = 0
    hashed = hashlib.sha256()
    try:
        with path.open("xb") as file:
            async for part in _parts(request, idle_s):
                received += len(part)
                if received > limit_bytes:
                    raise _too_large(limit_bytes)
                await _write(file, hashed, part)
    except ClientDisconnect:
        raise TruncatedUpload(
            f"the upload was cut off after {received} bytes; nothing was stored, send it again"
        ) from None
    except OSError as error:
        raise _explained(error, path.parent) from error
    if announced is not None and received != announced:
        raise TruncatedUpload(
            f"{announced} bytes were announced and {received} came; nothing was stored, send all of it again"
        )
    return hashed


async def _parts(request: Request, idle_s: float) -> AsyncIterator[bytes]:
    """The body in pieces of some hundred kilobytes, so that a small product costs one write."""
    gathered = bytearray()
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(idle_s):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise TruncatedUpload(f"no data came for {idle_s:g} s; nothing was stored, send it again") from None
        if chunk is None:
            break
        gathered += chunk
        if len(gathered) >= PART_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


async def _write(file: BinaryIO, hashed: "hashlib._Hash", part: bytes) -> None:
    def work() -> None:
        file.write(part)
        hashed.update(part)

    # Writing a small product to the page cache is faster than waking a thread; a large one may wait for the disk.
    if len(part) < PART_BYTES:
        work()
    else:
        await asyncio.to_thread(work)


def _content_length(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(
        f"the product is larger than the {limit_bytes} bytes this feed takes; "
        "split it, or raise max_product_bytes of the feed (and of the hub)",
        limit_bytes=limit_bytes,
    )


def _explained(error: OSError, directory: Path) -> Exception:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull("the hub's disk is full, so nothing was stored; free some space and send it again")
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return NotWritable(f"the hub can't write to its spool directory {directory}; correct its rights")
    return error


PART_BYTES = 256 * 1024
