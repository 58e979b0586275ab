"""A product of the hub's own on the way of all others: spooled, told to the node, stored in a log, read back.

The node keeps it in a log that no site, user or figure sees, and that holds what came in the last two minutes.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from blake3 import blake3

from downburst.foundation.errors import DownburstError, Failure, NotWritable
from downburst.supervision.disk import prove_room
from downburst_worker.node import Line

Ask = Callable[..., Awaitable[Line]]
"""Asks the node; raises why it can't or won't."""


async def prove_store(ask: Ask, *, node_dir: Path, spool_dir: Path, answer_s: float) -> None:
    """Raises `Failure` with a sentence that begins with the step at which the product got no further.

    The steps: `room`, `spool`, `node` (which took no job in), and of the node's own `append` and `read-back`.
    """
    with _step("room"):
        await asyncio.to_thread(prove_room, node_dir)
    content, path = os.urandom(PRODUCT_BYTES), spool_dir / ".probe"
    digest = blake3(content).hexdigest()
    try:
        with _step("spool"):
            await asyncio.to_thread(_spool, path, content)
        answer = await _told(ask, path=str(path), digest=digest, timeout_s=answer_s)
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    if answer.get("digest") != digest or answer.get("size") != len(content):
        raise Failure(f"read-back: the log of {node_dir} returns other bytes than were written; replace the disk")


async def _told(ask: Ask, **job: object) -> Line:
    try:
        return await ask("prove", **job)
    except DownburstError as error:
        # What the node says of its own steps begins with their names.
        if error.sentence.startswith(NODE_STEPS):
            raise
        raise Failure(f"node: {error.sentence}") from error


def _spool(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise NotWritable(
            f"{path.parent} can't be written ({error.strerror}); free some space or repair the disk"
        ) from None


@contextmanager
def _step(name: str) -> Iterator[None]:
    try:
        yield
    except DownburstError as error:
        raise Failure(f"{name}: {error.sentence}") from error


PRODUCT_BYTES = 4096
NODE_STEPS = ("append:", "read-back:")
