"""What a site's administrator changes at the hub: the registered endpoint, and windows of maintenance."""

from dataclasses import asdict, replace
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import Field

from downburst.access import Caller
from downburst.alarms import Silence
from downburst.events import SitesChanged
from downburst.ledger import Book
from downburst.model import Site
from downburst_api.guard import caller_of
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import EndpointChange, Shape, site_out

router = APIRouter(prefix="/v1/sites", tags=["self-service"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]


class Maintenance(Shape):
    """A window in which nobody is told of the site's alarms, from now on."""

    minutes: Annotated[float, Field(gt=0, le=60 * 24 * 31)]
    reason: Annotated[str, Field(max_length=500)] = ""


@router.put("/{site}/endpoint")
async def register_endpoint(hub: Hub, site: str, wanted: EndpointChange) -> dict[str, Any]:
    """Changes what a site says of itself: organisation, contact, place, interface, circuit attachment, rates."""
    given = wanted.given()

    def change(book: Book) -> Site:
        return book.sites.change(replace(book.sites.one(site), **given))

    kept = await hub.ledger.write(change)
    await hub.node.refresh()
    hub.bus.publish(SitesChanged())
    return site_out(kept)


@router.post("/{site}/silences", status_code=201)
async def begin_maintenance(hub: Hub, caller: Asking, site: str, wanted: Maintenance) -> dict[str, Any]:
    """Tells nobody of this site's alarms for a while, because somebody works on it."""
    until = hub.clock.now() + timedelta(minutes=wanted.minutes)

    def begin(book: Book) -> Silence:
        name = book.sites.one(site).name
        return book.silences.add(Silence(0, until, caller.name[:80], wanted.reason, site=name))

    return asdict(await hub.ledger.write(begin))
