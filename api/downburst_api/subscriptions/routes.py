"""Routes of subscriptions."""

from fastapi import APIRouter, Response

from downburst_api.http.etags import Unchanged, tagged
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Asking, Hub, Number
from downburst_api.subscriptions import service
from downburst_contract.subscriptions import Subscription, SubscriptionNew

router = APIRouter(prefix="/v1", tags=["sites"])


@router.get("/subscriptions")
async def list_all_subscriptions(
    hub: Hub, page: Paged, *, feed: str | None = None, site: str | None = None
) -> list[Subscription]:
    """Every subscription, of a feed or site if given, oldest first."""
    found = await hub.ledger.read(lambda tx: tx.subscriptions.all())
    wanted = (one for one in found if feed in (None, one.feed) and site in (None, one.site))
    return page.of(map(Subscription.of, wanted), "id")


@router.get("/sites/{site}/subscriptions")
async def list_subscriptions(hub: Hub, site: str, page: Paged) -> list[Subscription]:
    """The subscriptions of a site, oldest first."""
    found = await hub.ledger.read(lambda tx: tx.subscriptions.of_site(tx.sites.one(site).name))
    return page.of(map(Subscription.of, found), "id")


@router.post("/sites/{site}/subscriptions", status_code=201, responses={403: {}, 422: {}})
async def add_subscription(
    hub: Hub, caller: Asking, answer: Response, site: str, wanted: SubscriptionNew
) -> Subscription:
    """Subscribes a site to matching products; an invalid pattern is refused with the position."""
    return tagged(Subscription.of(await service.subscribe(hub, caller, site, wanted)), answer)


@router.delete("/subscriptions/{subscription}", status_code=204)
async def remove_subscription(hub: Hub, unchanged: Unchanged, subscription: Number) -> None:
    """Ends a subscription."""
    await service.end(hub, subscription, unchanged)


@router.delete("/sites/{site}/subscriptions/{subscription}", status_code=204)
async def remove_subscription_of(hub: Hub, unchanged: Unchanged, site: str, subscription: Number) -> None:
    """Ends a subscription of this site."""
    await service.end(hub, subscription, unchanged, site=site)
