"""Routes of LDM: sources that are asked for products, who may push, and who is connected."""

from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from downburst.errors import DownburstError, NodeAway
from downburst.ldm.feed_types import parse_feed_type
from downburst.ledger import Book
from downburst.model import LdmAccept
from downburst_api.pages import Paged
from downburst_api.rights import check_pattern
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import LdmAcceptNew, LdmSourceNew, ldm_source_out

router = APIRouter(prefix="/v1/ldm", tags=["ldm"])
Hub = Annotated[Runtime, Depends(runtime_of)]


@router.get("/sources")
async def list_sources(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """All sources with the state of each of their upstreams, and feed types without a feed."""
    kept, routed = await hub.ledger.read(lambda book: (book.ldm_sources.all(), _routed(book)))
    state = {one["source"]: one["upstreams"] for one in (await _status(hub)).get("sources", [])}
    listed = [
        ldm_source_out(one)
        | {
            "state": state.get(one.name, [{"upstream": name, "connected": False} for name in one.upstreams]),
            "has_feeds": not parse_feed_type(one.feeds) & ~routed,
        }
        for one in kept
    ]
    return page.of(listed, "source")


@router.post("/sources", status_code=201, responses={409: {}, 422: {}})
async def add_source(hub: Hub, wanted: LdmSourceNew) -> dict[str, Any]:
    """Requests products from LDMs, into the feeds that have their feed types."""
    await check_pattern(hub.node, "pattern", wanted.pattern)
    source = wanted.to_model()
    kept = await hub.ledger.write(lambda book: book.ldm_sources.add(source))
    try:
        await hub.node.connect_ldm()
    except NodeAway:
        pass
    except DownburstError:
        await hub.ledger.write(lambda book: book.ldm_sources.remove(source.name))
        with suppress(DownburstError):
            await hub.node.connect_ldm()
        raise
    return ldm_source_out(kept)


@router.put("/sources/{source}", responses={404: {}, 422: {}})
async def change_source(hub: Hub, source: str, wanted: LdmSourceNew) -> dict[str, Any]:
    """Gives a source exactly these properties."""
    await check_pattern(hub.node, "pattern", wanted.pattern)
    kept = await hub.ledger.write(
        lambda book: (book.ldm_sources.one(source), book.ldm_sources.change(wanted.to_model()))
    )
    with suppress(NodeAway):
        await hub.node.connect_ldm()
    return ldm_source_out(kept[1])


@router.delete("/sources/{source}", status_code=204, responses={404: {}})
async def remove_source(hub: Hub, source: str) -> None:
    """Removes a source; its products stay."""
    await hub.ledger.write(lambda book: book.ldm_sources.remove(source))
    with suppress(NodeAway):
        await hub.node.connect_ldm()
    for key in [key for key in hub.live.ldm_sources if key[0] == source]:
        del hub.live.ldm_sources[key]


@router.get("/accepts")
async def list_accepts(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """Hosts that may push, with their feed types, oldest first."""
    return page.of(map(asdict, await hub.ledger.read(lambda book: book.ldm_accepts.all())), "id")


@router.post("/accepts", status_code=201, responses={422: {}})
async def add_accept(hub: Hub, wanted: LdmAcceptNew) -> LdmAccept:
    """Lets hosts push products."""
    await check_pattern(hub.node, "pattern", wanted.pattern)
    await check_pattern(hub.node, "host", wanted.host)
    kept = await hub.ledger.write(lambda book: book.ldm_accepts.add(wanted.to_model()))
    with suppress(NodeAway):
        await hub.node.connect_ldm()
    return kept


@router.delete("/accepts/{number}", status_code=204, responses={404: {}})
async def remove_accept(hub: Hub, number: int) -> None:
    """Withdraws the permission to push."""
    await hub.ledger.write(lambda book: book.ldm_accepts.remove(number))
    with suppress(NodeAway):
        await hub.node.connect_ldm()


@router.get("/peers")
async def list_peers(hub: Hub) -> dict[str, Any]:
    """Connected LDMs with their requests, and the products sent and answered.

    LDM has no receipts: an answer means that the peer processed the product, not that it is on its disk.
    """
    said = await _status(hub)
    return {"addresses": said.get("addresses", []), "peers": said.get("peers", [])}


@router.get("/reports")
async def list_reports(
    hub: Hub,
    page: Paged,
    *,
    host: Annotated[str | None, Query(max_length=255, description="Only of this host.")] = None,
    feed: Annotated[str | None, Query(max_length=64, description="Only of this feed type.")] = None,
) -> list[dict[str, Any]]:
    """Latest rtstats lines: latencies at hosts that this hub does not run, by their clocks."""
    told = (one for one in hub.live.reports.values() if host in (None, one.host) and feed in (None, one.feed))
    return page.of(({"report": f"{one.host} {one.feed} {one.path}", **asdict(one)} for one in told), "report")


async def _status(hub: Runtime) -> dict[str, Any]:
    with suppress(NodeAway):
        found: dict[str, Any] = (await hub.node.status()).get("ldm", {})
        return found
    return {}


def _routed(book: Book) -> int:
    bits = 0
    for feed in book.feeds.all():
        if feed.ldm_feed_type:
            bits |= parse_feed_type(feed.ldm_feed_type)
    return bits
