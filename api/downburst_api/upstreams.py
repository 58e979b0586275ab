"""Routes of upstreams: the hubs that this hub is a site of."""

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from downburst.errors import DownburstError, NodeAway
from downburst.ledger import Book
from downburst.model import Upstream
from downburst_api.pages import Paged
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import UpstreamNew, upstream_out

router = APIRouter(prefix="/v1", tags=["upstreams"])
Hub = Annotated[Runtime, Depends(runtime_of)]


@router.post("/upstreams", status_code=201, responses={404: {}, 409: {}, 422: {}})
async def add_upstream(hub: Hub, wanted: UpstreamNew) -> dict[str, Any]:
    """Makes this hub a site of another one, with a token from its operator."""
    upstream = Upstream(wanted.upstream, wanted.address, wanted.token, tuple(wanted.feeds))
    kept = await hub.ledger.write(lambda book: _keep(book, upstream))
    try:
        await hub.node.connect_upstreams()
    except NodeAway:
        pass
    except DownburstError:
        await hub.ledger.write(lambda book: book.upstreams.remove(upstream.name))
        with suppress(DownburstError):
            await hub.node.connect_upstreams()
        raise
    return upstream_out(kept)


@router.get("/upstreams")
async def list_upstreams(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """All upstreams with their state: connected or the reason, and products stored, skipped and looped."""
    kept = await hub.ledger.read(lambda book: book.upstreams.all())
    state: dict[str, Any] = {}
    with suppress(NodeAway):
        said = (await hub.node.status()).get("upstreams", [])
        state = {one["upstream"]: one for one in said}
    listed = (upstream_out(one) | state.get(one.name, {"connected": False}) for one in kept)
    return page.of(listed, "upstream")


@router.delete("/upstreams/{upstream}", status_code=204, responses={404: {}})
async def remove_upstream(hub: Hub, upstream: str) -> None:
    """Removes an upstream; its products stay."""
    await hub.ledger.write(lambda book: book.upstreams.remove(upstream))
    with suppress(NodeAway):
        await hub.node.connect_upstreams()
    hub.live.upstreams.pop(upstream, None)


def _keep(book: Book, upstream: Upstream) -> Upstream:
    for feed in upstream.feeds:
        book.feeds.one(feed)
    return book.upstreams.add(upstream)
