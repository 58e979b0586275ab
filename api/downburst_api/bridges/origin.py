"""The origin server of WIS2: the bytes of announced products, for all who ask, without a login."""

import asyncio
import os
import secrets
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from downburst.domain.bridges.publishers import Outgoing, Wis2Publisher
from downburst.foundation.errors import NotFound
from downburst.ledger import Transaction
from downburst.wis2.notifications import Kind
from downburst.wis2.records import record_of
from downburst_api.http.parameters import Hub

router = APIRouter(tags=["bridges"])
RECORD: dict[int | str, dict[str, Any]] = {200: {"content": {"application/geo+json": {}}}, 404: {}}
FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {}}},
    206: {},
    404: {},
    410: {},
    416: {},
}


@router.head("/wis2/{publisher}/{epoch}/{name}", include_in_schema=False)
@router.get("/wis2/{publisher}/{epoch}/{name}", response_class=FileResponse, responses=FILE)
async def download_product(hub: Hub, publisher: str, epoch: str, name: str) -> FileResponse:
    """The bytes of a product that a publisher has announced, or a range of them; others don't exist here."""
    found, outgoing = await hub.ledger.read(lambda tx: _announced(tx, publisher, epoch, name))
    file = await hub.node.exported(found.feed, epoch, outgoing.sequence)
    # The file itself may make room for others while this answer is sent.
    own = await asyncio.to_thread(_linked, file.path)
    headers = {"ETag": f'"{outgoing.digest}"', "Cache-Control": "public, max-age=86400, immutable"}
    done = BackgroundTask(own.unlink, missing_ok=True)
    return FileResponse(own, media_type=found.media_type, headers=headers, background=done)


@router.get("/wis2/{publisher}/record.json", response_class=Response, responses=RECORD)
async def download_record(hub: Hub, publisher: str) -> Response:
    """The record of discovery of a publisher's dataset, as it was announced last."""
    record = await hub.ledger.read(lambda tx: _record(tx, publisher))
    return Response(record, media_type="application/geo+json")


def _record(tx: Transaction, name: str) -> bytes:
    publisher, latest = tx.wis2.publishers.one(name), tx.wis2.outbox.latest_record(name)
    if publisher.dataset is None or latest is None:
        raise NotFound(f"{name} has no record of discovery")
    return record_of(publisher, publisher.dataset, latest.made_at)


def _announced(tx: Transaction, publisher: str, epoch: str, name: str) -> tuple[Wis2Publisher, Outgoing]:
    number = name.split("-", maxsplit=1)[0]
    if number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER and len(epoch) <= LONGEST_EPOCH:
        outgoing = tx.wis2.outbox.of_product(publisher, epoch, int(number))
        if outgoing is not None and outgoing.kind != Kind.DELETION:
            return tx.wis2.publishers.one(publisher), outgoing
    raise NotFound("nothing is published under this address, or not any more")


def _linked(path: Path) -> Path:
    own = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    os.link(path, own)
    return own


LONGEST_NUMBER = 18
LONGEST_EPOCH = 20
