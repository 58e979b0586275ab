"""Routes of circuits on demand: offers, providers and orders."""

from typing import Annotated

from fastapi import APIRouter, Query

from downburst.ledger.repositories.ordering.orders import WhichOrders
from downburst_api.http.pagination import Documented
from downburst_api.http.parameters import Hub, Number
from downburst_api.ordering import service
from downburst_contract import ordering as shapes

router = APIRouter(prefix="/v1", tags=["circuits on demand"])


@router.get("/circuit-offers")
async def list_circuit_offers(hub: Hub) -> shapes.CircuitOffers:
    """All offers of circuits on demand, with their measured set-up times and the use of today's budgets."""
    return shapes.CircuitOffers(offers=await service.offers(hub))


@router.get("/circuit-offers/{offer}", responses={404: {}})
async def show_circuit_offer(hub: Hub, offer: str) -> shapes.CircuitOffer:
    """One offer."""
    return await service.offer(hub, offer)


@router.put("/circuit-offers/{offer}", responses={404: {}, 409: {}})
async def put_circuit_offer(hub: Hub, offer: str, wanted: shapes.CircuitOfferWanted) -> shapes.CircuitOffer:
    """Adds an offer, or gives it exactly these values; the scheduler weighs it in its next plans."""
    await service.put_offer(hub, wanted.to_model(offer))
    return await service.offer(hub, offer)


@router.delete("/circuit-offers/{offer}", status_code=204, responses={404: {}, 409: {}})
async def remove_circuit_offer(hub: Hub, offer: str) -> None:
    """Removes an offer that no open order needs; its orders stay readable."""
    await service.remove_offer(hub, offer)


@router.get("/circuit-providers")
async def list_circuit_providers(hub: Hub) -> shapes.CircuitProviders:
    """All records of other networks' providers."""
    kept = await hub.ledger.read(lambda tx: tx.planning.providers.all())
    return shapes.CircuitProviders(providers=[shapes.CircuitProvider.of(one) for one in kept])


@router.get("/circuit-providers/{provider}", responses={404: {}})
async def show_circuit_provider(hub: Hub, provider: str) -> shapes.CircuitProvider:
    """One provider."""
    return shapes.CircuitProvider.of(await hub.ledger.read(lambda tx: tx.planning.providers.one(provider)))


@router.put("/circuit-providers/{provider}", responses={409: {}})
async def put_circuit_provider(
    hub: Hub, provider: str, wanted: shapes.CircuitProviderWanted
) -> shapes.CircuitProvider:
    """Adds a provider, or gives it exactly these values; certificates and keys are paths on the hub's machine."""
    return shapes.CircuitProvider.of(await service.put_provider(hub, wanted.to_model(provider)))


@router.delete("/circuit-providers/{provider}", status_code=204, responses={404: {}, 409: {}})
async def remove_circuit_provider(hub: Hub, provider: str) -> None:
    """Removes a provider that no offer and no unfinished circuit needs."""
    await service.remove_provider(hub, provider)


@router.get("/circuit-orders")
async def list_circuit_orders(  # noqa: PLR0913
    hub: Hub,
    page: Documented,
    *,
    offer: Annotated[str | None, Query(max_length=63)] = None,
    feed: Annotated[str | None, Query(max_length=64)] = None,
    site: Annotated[str | None, Query(max_length=63)] = None,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> shapes.CircuitOrderPage:
    """Orders of the scheduler, newest first, each with its reason and its outcome."""
    found = await hub.ledger.read(
        lambda tx: tx.planning.orders.page(WhichOrders(offer, feed, site, before, limit + 1))
    )
    orders = [shapes.CircuitOrder.of(one) for one in found[:limit]]
    following = orders[-1].order if len(found) > limit else None
    return shapes.CircuitOrderPage(orders=orders, next=page.lead_to(following, by="before"))


@router.get("/circuit-orders/{number}", responses={404: {}})
async def show_circuit_order(hub: Hub, number: Number) -> shapes.CircuitOrder:
    """One order."""
    return shapes.CircuitOrder.of(await hub.ledger.read(lambda tx: tx.planning.orders.one(number)))
