"""Routes of bridges: sources of WIS2."""

from fastapi import APIRouter

from downburst_api.bridges import service
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Hub
from downburst_contract.bridges.sources import (
    Bridge,
    BridgeChange,
    BridgeWanted,
    BrokerHole,
    CentreAccount,
    FailedProduct,
    PassedOverMessage,
    Retried,
)

router = APIRouter(prefix="/v1", tags=["bridges"])


@router.get("/bridges")
async def list_bridges(hub: Hub, page: Paged) -> list[Bridge]:
    """All sources with the state of their brokers, by name."""
    return page.of(await service.listed(hub), "bridge")


@router.post("/bridges", status_code=201, responses={404: {}, 409: {}, 422: {}})
async def add_bridge(hub: Hub, wanted: BridgeWanted) -> Bridge:
    """Adds a source of WIS2, which connects to its brokers."""
    return await service.add(hub, wanted.to_model())


@router.get("/bridges/{bridge}", responses={404: {}})
async def show_bridge(hub: Hub, bridge: str) -> Bridge:
    """A source with the state of its brokers."""
    return await service.shown(hub, bridge)


@router.patch("/bridges/{bridge}", responses={404: {}, 422: {}})
async def change_bridge(hub: Hub, bridge: str, wanted: BridgeChange) -> Bridge:
    """Changes a source; it connects to its brokers anew, and loses nothing."""
    return await service.change(hub, bridge, wanted)


@router.delete("/bridges/{bridge}", status_code=204, responses={404: {}})
async def remove_bridge(hub: Hub, bridge: str) -> None:
    """Removes a source; its products stay."""
    await service.remove(hub, bridge)


@router.get("/bridges/{bridge}/failed", responses={404: {}})
async def list_failed_products(hub: Hub, bridge: str, page: Paged) -> list[FailedProduct]:
    """The last 10,000 products for which nothing is tried any more, by data id."""
    return page.of(map(FailedProduct.of, await service.failed(hub, bridge)), "data_id")


@router.post("/bridges/{bridge}/failed/retry", responses={404: {}})
async def retry_failed_products(hub: Hub, bridge: str) -> Retried:
    """Has all failed products of a source fetched once more."""
    return Retried(products=await service.retry(hub, bridge))


@router.get("/bridges/{bridge}/centres", responses={404: {}})
async def list_centres(hub: Hub, bridge: str, page: Paged) -> list[CentreAccount]:
    """The accounts of centres for today, UTC, and those of centres from which products are still to come."""
    return page.of(await service.centres(hub, bridge), "centre")


@router.get("/bridges/{bridge}/passed-over", responses={404: {}})
async def list_passed_over_messages(hub: Hub, bridge: str) -> list[PassedOverMessage]:
    """The last 100 messages of which nothing was fetched, with the reasons; copies are left out."""
    return [PassedOverMessage.model_validate(one) for one in await service.passed_over(hub, bridge)]


@router.get("/bridges/{bridge}/holes", responses={404: {}})
async def list_holes(hub: Hub, bridge: str, page: Paged) -> list[BrokerHole]:
    """The times in which a broker may have dropped notifications, the newest first."""
    found = await service.holes(hub, bridge)
    return page.of(map(BrokerHole.model_validate, found), "number", falling=True)
