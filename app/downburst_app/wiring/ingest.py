"""The watched directory as a separate process: its files go to the hub as HTTP uploads.

It needs neither the hub's ledger nor its bus, so it may run on the machine of the source.
"""

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import file_digest
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.clock import to_us
from downburst.foundation.errors import BadInput, BadSettings, Failure
from downburst.host.local_token import authorization
from downburst.settings.hub import Settings
from downburst.supervision import keep, start
from downburst_app.play.uploads import Answer, Uploads
from downburst_app.wiring.hub import directory_source
from downburst_app.wiring.process import cancelled, stopped_by_signals


async def serve_ingest(settings: Settings, hub: str) -> None:
    """Watches the directory for a hub until SIGTERM or SIGINT."""
    if not settings.watch.apart:
        raise BadSettings(
            "the hub watches the directory itself; to watch it beside the hub set watch.apart = true, for the hub too"
        )
    uploads = ProductUploads(hub)
    source = directory_source(settings.watch, uploads, on_fault=_LOG.warning)
    if source is None:
        raise BadSettings("watch.directory names no directory; set it to the one that is to be watched")
    stop = start("apart.stop", stopped_by_signals().wait())
    watching = start("ingest.directory", keep("ingest.directory", source.run))
    _LOG.info("files of %s go to %s", settings.watch.directory, hub)
    try:
        await asyncio.wait((stop, watching), return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            await watching
    finally:
        await cancelled(stop, watching)
        uploads.close()
    _LOG.info("stopped")


class ProductUploads:
    """Hands complete files to a hub; a refusal due to the hub's own state is a `Failure`, to be tried again."""

    def __init__(self, hub: str, uploads: Uploads | None = None) -> None:
        self._hub = hub
        self._uploads = uploads or Uploads(hub)

    async def __call__(self, path: Path, product: Product, *, remove: bool) -> Acknowledgement:
        """Sends the bytes of `path`; the hub verifies them by their SHA-256."""
        size, digest = await asyncio.to_thread(_measured, path)
        headers = {
            "Content-Length": str(size),
            "Content-Digest": f"sha-256=:{digest}:",
            "Content-Type": "application/octet-stream",
            **authorization(self._hub),
        }
        if product.created_at is not None:
            headers["Downburst-Created"] = str(to_us(product.created_at))
        if product.origin is not None:
            headers["Downburst-Origin"] = product.origin
        to = f"/v1/feeds/{quote(product.feed, safe='')}/products/{quote(product.product_id, safe='')}"
        try:
            answer = await self._uploads.put(to, headers=headers, pieces=_pieces(path))
        except (ConnectionError, TimeoutError) as error:
            raise Failure(f"the hub at {self._hub} does not answer ({error or type(error).__name__})") from error
        acknowledged = _acknowledged(answer)
        if remove:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        return acknowledged

    def close(self) -> None:
        """Closes its connections."""
        self._uploads.close()


def _acknowledged(answer: Answer) -> Acknowledgement:
    try:
        told = json.loads(answer.text)
        if answer.status in (HTTPStatus.OK, HTTPStatus.CREATED):
            return Acknowledgement(
                size_bytes=told["size"],
                digest=told["digest"],
                sequence=told.get("sequence"),
                epoch=told.get("epoch"),
                duplicate_of=told.get("duplicate_of"),
            )
        sentence = str(told["detail"])
    except (ValueError, KeyError, TypeError):
        raise Failure(
            f"the hub answered {answer.status} without a reason; check that it is a Downburst hub"
        ) from None
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status in NOT_OF_THE_FILE:
        raise Failure(sentence)
    raise BadInput(sentence)


def _measured(path: Path) -> tuple[int, str]:
    """Size in bytes, and the SHA-256 in base64."""
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").digest()
        return file.tell(), b64encode(digest).decode()


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece


_LOG = logging.getLogger("downburst.ingest")
PIECE_BYTES = 256 * 1024
NOT_OF_THE_FILE = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
"""Refusals due to the caller or its rate, for any content."""
