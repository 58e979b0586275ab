"""Routes of upstreams: the hubs that this hub receives from as a site."""

from fastapi import APIRouter

from downburst.domain import upstreams as upstreams_domain
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Hub
from downburst_api.upstreams import service
from downburst_contract.upstreams import Upstream, UpstreamListed, UpstreamNew, upstream_members

router = APIRouter(prefix="/v1", tags=["upstreams"])


@router.post("/upstreams", status_code=201, responses={404: {}, 409: {}, 422: {}})
async def add_upstream(hub: Hub, wanted: UpstreamNew) -> Upstream:
    """Makes this hub a site of another one, with a token from its operator."""
    upstream = upstreams_domain.Upstream(wanted.upstream, wanted.address, wanted.token, tuple(wanted.feeds))
    return Upstream.of(await service.add(hub, upstream))


@router.get("/upstreams", response_model_exclude_unset=True)
async def list_upstreams(hub: Hub, page: Paged) -> list[UpstreamListed]:
    """All upstreams with their state: connected or the reason, and products stored, skipped and looped."""
    kept = await hub.ledger.read(lambda tx: tx.fleet.upstreams.all())
    states = await service.states(hub)
    unknown = {"connected": False}
    listed = (UpstreamListed(**upstream_members(one) | states.get(one.name, unknown)) for one in kept)
    return page.of(listed, "upstream")


@router.delete("/upstreams/{upstream}", status_code=204, responses={404: {}})
async def remove_upstream(hub: Hub, upstream: str) -> None:
    """Removes an upstream; its products stay."""
    await service.remove(hub, upstream)
