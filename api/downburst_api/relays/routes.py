"""Routes of relays."""

from fastapi import APIRouter

from downburst_api.http.pagination import NewestPaged, Paged
from downburst_api.http.parameters import Hub
from downburst_api.relays import service
from downburst_contract.relays import Relay, RelayRecord, RelayWanted

router = APIRouter(prefix="/v1", tags=["relays"])


@router.get("/relays")
async def list_relays(hub: Hub, page: Paged) -> list[Relay]:
    """All relays with their states, and the tunnels and legs of their newest reports."""
    return page.of(await service.shown(hub), "relay")


@router.get("/relays/{relay}", responses={404: {}})
async def show_relay(hub: Hub, relay: str) -> Relay:
    """One relay."""
    return await service.one(hub, relay)


@router.put("/relays/{relay}", responses={404: {}, 409: {}})
async def put_relay(hub: Hub, relay: str, wanted: RelayWanted) -> Relay:
    """Adds a relay, or gives it exactly these values; its host enrols with a token of the site of this name."""
    await service.put(hub, wanted.to_model(relay))
    return await service.one(hub, relay)


@router.delete("/relays/{relay}", status_code=204, responses={404: {}})
async def remove_relay(hub: Hub, relay: str) -> None:
    """Removes a relay with its site record and credentials; its session ends, and its sites take other ways."""
    await service.remove(hub, relay)


@router.get("/relays/{relay}/log", responses={404: {}})
async def show_relay_log(hub: Hub, relay: str, page: NewestPaged) -> list[RelayRecord]:
    """The performance that tunnels of a relay achieved, newest first: each at its end, and each hour until then."""
    found = await service.log(hub, relay, before=page.before, limit=page.to_read)
    return page.of([RelayRecord.of(one) for one in found], "number")
