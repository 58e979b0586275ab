"""Routes of LDM: sources of products, permissions to push, and connections."""

from typing import Annotated

from fastapi import APIRouter, Query

from downburst.ldm.feed_types import parse_feed_type
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Hub, Number
from downburst_api.ldm import service
from downburst_contract import ldm as shapes

router = APIRouter(prefix="/v1/ldm", tags=["ldm"])


@router.get("/sources", response_model_exclude_unset=True)
async def list_sources(hub: Hub, page: Paged) -> list[shapes.LdmSourceListed]:
    """All sources with the state of each of their upstreams, and feed types without a feed."""
    kept, routed = await hub.ledger.read(lambda tx: (tx.ldm.sources.all(), service.routed(tx)))
    states = {one["source"]: one["upstreams"] for one in (await service.status(hub)).get("sources", [])}
    listed = (
        shapes.LdmSourceListed.of(
            one,
            state=states.get(one.name, [{"upstream": name, "connected": False} for name in one.upstreams]),
            has_feeds=not parse_feed_type(one.feeds) & ~routed,
        )
        for one in kept
    )
    return page.of(listed, "source")


@router.post("/sources", status_code=201, responses={409: {}, 422: {}})
async def add_source(hub: Hub, wanted: shapes.LdmSourceNew) -> shapes.LdmSource:
    """Requests products from LDMs, into the feeds that have their feed types."""
    return shapes.LdmSource.of(await service.add_source(hub, wanted.to_model()))


@router.put("/sources/{source}", responses={404: {}, 422: {}})
async def change_source(hub: Hub, source: str, wanted: shapes.LdmSourceNew) -> shapes.LdmSource:
    """Gives a source exactly these properties."""
    return shapes.LdmSource.of(await service.change_source(hub, source, wanted.to_model()))


@router.delete("/sources/{source}", status_code=204, responses={404: {}})
async def remove_source(hub: Hub, source: str) -> None:
    """Removes a source; its products stay."""
    await service.remove_source(hub, source)


@router.get("/accepts")
async def list_accepts(hub: Hub, page: Paged) -> list[shapes.LdmAccept]:
    """Hosts that may push, with their feed types, oldest first."""
    return page.of(map(shapes.LdmAccept.of, await hub.ledger.read(lambda tx: tx.ldm.accepts.all())), "id")


@router.post("/accepts", status_code=201, responses={422: {}})
async def add_accept(hub: Hub, wanted: shapes.LdmAcceptNew) -> shapes.LdmAccept:
    """Lets hosts push products."""
    return shapes.LdmAccept.of(await service.add_accept(hub, wanted.to_model()))


@router.delete("/accepts/{number}", status_code=204, responses={404: {}})
async def remove_accept(hub: Hub, number: Number) -> None:
    """Withdraws the permission to push."""
    await hub.ledger.write(lambda tx: tx.ldm.accepts.remove(number))
    await service.reconnect(hub)


@router.get("/peers", response_model_exclude_unset=True)
async def list_peers(hub: Hub) -> shapes.LdmPeers:
    """Connected LDMs with their requests, and the products sent and answered.

    LDM has no receipts: an answer means that the peer processed the product, not that it is on its disk.
    """
    said = await service.status(hub)
    return shapes.LdmPeers(addresses=said.get("addresses", []), peers=said.get("peers", []))


@router.get("/reports")
async def list_reports(
    hub: Hub,
    page: Paged,
    *,
    host: Annotated[str | None, Query(max_length=255, description="Only of this host.")] = None,
    feed: Annotated[str | None, Query(max_length=64, description="Only of this feed type.")] = None,
) -> list[shapes.LdmReport]:
    """Latest rtstats lines: latencies at hosts that this hub does not run, by their clocks."""
    told = (one for one in hub.live.ldm.reports.values() if host in (None, one.host) and feed in (None, one.feed))
    return page.of(map(shapes.LdmReport.of, told), "report")
