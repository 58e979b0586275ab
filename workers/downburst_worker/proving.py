"""A product of the hub's own on the path of all others: spooled, sent to the node, stored in a log, read back.

The node keeps it in a log outside all sites, users and figures, with the last two minutes of such products.
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
"""Sends the node a job; raises the reason for a failure or refusal."""


async def prove_store(ask: Ask, *, node_dir: Path, spool_dir: Path, answer_s: float) -> None:
    """Raises `Failure` with a sentence that begins with the step at which the product failed.

    The steps: `room`, `spool`, `node` (which accepted no job), and the node's own `append` and `read-back`.
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
        # The node's sentences about its own steps begin with their names.
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
