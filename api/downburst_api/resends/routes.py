"""Routes of resends of stored products to a site."""

from fastapi import APIRouter

from downburst_api.http.pagination import NewestPaged
from downburst_api.http.parameters import Hub, Number
from downburst_api.resends import service
from downburst_contract.resends import Resend, ResendNew

router = APIRouter(prefix="/v1", tags=["resends"])


@router.post("/resends", status_code=201, responses={403: {}, 422: {}})
async def add_resend(hub: Hub, wanted: ResendNew) -> Resend:
    """Sends products in a feed's log to a site again, by a range of time; it waits while the site is offline."""
    return Resend.of(await service.add(hub, wanted))


@router.get("/resends")
async def list_resends(
    hub: Hub,
    page: NewestPaged,
    site: str | None = None,
    feed: str | None = None,
) -> list[Resend]:
    """The newest resends, newest first."""
    found = await hub.ledger.read(
        lambda tx: tx.resends.newest(site=site, feed=feed, before=page.before, limit=page.to_read)
    )
    return page.of([Resend.of(one) for one in found], "id")


@router.get("/resends/{resend}")
async def show_resend(hub: Hub, resend: Number) -> Resend:
    """One resend."""
    return Resend.of(await hub.ledger.read(lambda tx: tx.resends.one(resend)))


@router.delete("/resends/{resend}")
async def cancel_resend(hub: Hub, resend: Number) -> Resend:
    """Cancels a resend; delivered products stay."""
    return Resend.of(await service.cancel(hub, resend))
