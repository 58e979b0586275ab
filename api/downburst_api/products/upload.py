"""The upload of a product: streamed into a spool file, then handed to the node by its path."""

import binascii
import re
import uuid
from contextlib import suppress
from datetime import datetime, timedelta
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.convertors import StringConvertor, register_url_convertor

from downburst.domain.products import Acknowledgement, Product
from downburst.foundation.clock import from_us
from downburst.foundation.errors import BadInput, BadName, DigestMismatch
from downburst.foundation.names import check_origin
from downburst_api.http.parameters import Hub
from downburst_api.products.spool import spool
from downburst_contract.products import Stored


class AnyText(StringConvertor):
    """Accepts slashes and line ends too, so that a bad id is refused by the rules of ids and not by the routing."""

    regex = "(?s:.*)"


register_url_convertor("anytext", AnyText())
router = APIRouter(prefix="/v1/feeds", tags=["products"])
_UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
    "parameters": [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": text}
        for name, text in (
            ("Content-Digest", "sha-256=:BASE64: of the bytes (RFC 9530); checked before anything is stored"),
            ("Downburst-BLAKE3", "BLAKE3-256 of the bytes in hex; checked before anything is stored"),
            ("Downburst-Created", "time of the product's creation: RFC 3339, or microseconds since 1970"),
            ("Downburst-Origin", "host of origin"),
        )
    ],
}


@router.put(
    "/{feed}/products/{product_id:anytext}",
    status_code=201,
    response_model=Stored,
    openapi_extra=_UPLOAD_BODY,
    responses={
        200: {"model": Stored, "description": "A duplicate of a product that is there."},
        413: {},
        422: {},
        507: {},
    },
)
async def put_product(hub: Hub, request: Request, feed: str, product_id: str) -> JSONResponse:
    """Stores one product; the id is one percent-encoded value, so `/` and `%` in it survive."""
    raw = request.scope.get("raw_path")
    name = product_id if raw is None else _product_id(raw)
    known = await hub.feed(feed)
    headers = request.headers
    product = Product(
        feed, name, _created(headers.get("downburst-created")), _origin(headers.get("downburst-origin"))
    )
    blake3, sha256 = _blake3(headers.get("downburst-blake3")), _sha256(headers.get("content-digest"))
    limit = min(known.max_product_bytes, hub.settings.max_product_bytes)
    spooled = hub.settings.spool_dir / uuid.uuid4().hex
    try:
        digests = await spool(request, spooled, limit_bytes=limit, idle_s=hub.settings.upload_idle_s)
        if sha256 is not None and digests.digest() != sha256:
            raise DigestMismatch(
                f"the bytes that came have SHA-256 {digests.hexdigest()}, Content-Digest says {sha256.hex()}; "
                "nothing was stored, send the product again"
            )
        stored = await hub.node.ingest(spooled, product, remove=True, digest=blake3)
    finally:
        spooled.unlink(missing_ok=True)
    return _answer(product, stored)


def _answer(product: Product, stored: Acknowledgement) -> JSONResponse:
    duplicate = stored.duplicate_of is not None
    shape = Stored(
        feed=product.feed,
        product_id=product.product_id,
        stored=not duplicate,
        sequence=stored.sequence,
        epoch=stored.epoch,
        size=stored.size_bytes,
        digest=stored.digest,
        stored_at=stored.stored_at,
        created_at=stored.created_at,
        duplicate_of=stored.duplicate_of,
    )
    return JSONResponse(shape.model_dump(mode="json", exclude_none=True), 200 if duplicate else 201)


def _product_id(raw_path: bytes) -> str:
    encoded = raw_path.partition(b"/products/")[2]
    try:
        return unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        raise BadName("the product id is not valid UTF-8; send it as UTF-8, percent-encoded") from None


def _created(text: str | None) -> datetime | None:
    if text is None:
        return None
    with suppress(ValueError, OverflowError):
        if text.isascii() and text.isdigit():
            return from_us(int(text))
        instant = datetime.fromisoformat(text)
        if instant.utcoffset() is not None and instant.year >= 1970:
            return instant - timedelta()
    raise BadInput(
        f"Downburst-Created is {text!r}; send RFC 3339 with an offset, such as 2026-01-31T06:00:00Z, or microseconds"
    )


def _origin(text: str | None) -> str | None:
    return None if text is None else check_origin(text)


def _blake3(text: str | None) -> str | None:
    if text is not None and re.fullmatch("[0-9a-fA-F]{64}", text) is None:
        raise BadInput(
            "Downburst-BLAKE3 is not 64 hexadecimal digits; send the BLAKE3-256 of the bytes, or leave it out"
        )
    return None if text is None else text.lower()


def _sha256(content_digest: str | None) -> bytes | None:
    if content_digest is None:
        return None
    found = _SHA256.search(content_digest)
    if found is None:
        raise BadInput(f"Content-Digest is {content_digest!r}; send sha-256=:BASE64: of the bytes, or leave it out")
    return binascii.a2b_base64(found[1])


_SHA256 = re.compile(r"(?:^|[,\s])sha-256=:([A-Za-z0-9+/]{43}=):")
