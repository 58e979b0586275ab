"""What a site's administrator changes at the hub: the registered endpoint, and windows of maintenance."""

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path
from pydantic import Field

from downburst.access import Caller
from downburst.alarms import AlarmKind, Receiver, ReceiverKind, Severity, Silence, severities_told
from downburst.events import SitesChanged
from downburst.ledger import Book
from downburst.model import Site
from downburst.network.receiver_addresses import check_address
from downburst_api.alarms import Begins, receiver_out, window
from downburst_api.guard import caller_of
from downburst_api.pages import Paged
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import EndpointChange, Shape, site_out

router = APIRouter(prefix="/v1/sites", tags=["self-service"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]
Number = Annotated[int, Path(ge=1, le=2**53)]


class Maintenance(Shape):
    """A window in which nobody is told of the site's alarms."""

    minutes: Annotated[float, Field(gt=0, le=60 * 24 * 31)]
    reason: Annotated[str, Field(max_length=500)] = ""
    begins: Begins = None
    """When; now, if left out."""


class OwnReceiver(Shape):
    """Whom to tell of this site's alarms; empty lists stand for all. Without both severities and kinds: no
    information."""

    receiver: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.-]+$")]
    kind: Literal[ReceiverKind.MAIL, ReceiverKind.WEBHOOK]
    address: Annotated[str, Field(min_length=3, max_length=2000)]
    kinds: Annotated[list[AlarmKind], Field(max_length=20)] | None = None
    feeds: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=1000)] | None = None
    severities: Annotated[list[Severity], Field(max_length=len(Severity))] | None = None


@router.put("/{site}/endpoint")
async def register_endpoint(hub: Hub, site: str, wanted: EndpointChange) -> dict[str, Any]:
    """Changes a site's own properties: organisation, contact, place, interface, circuit attachment, rates."""
    given = wanted.given()

    def change(book: Book) -> Site:
        return book.sites.change(replace(book.sites.one(site), **given))

    kept = await hub.ledger.write(change)
    await hub.node.refresh()
    hub.bus.publish(SitesChanged())
    return site_out(kept)


@router.post("/{site}/silences", status_code=201)
async def begin_maintenance(hub: Hub, caller: Asking, site: str, wanted: Maintenance) -> dict[str, Any]:
    """Creates a maintenance window of this site: its alarms are not notified."""
    begins, until = window(wanted.begins, wanted.minutes, hub.clock.now())

    def begin(book: Book) -> Silence:
        name = book.sites.one(site).name
        return book.silences.add(Silence(0, until, caller.name[:80], wanted.reason, site=name, begins=begins))

    return asdict(await hub.ledger.write(begin))


@router.get("/{site}/silences")
async def list_maintenance(hub: Hub, page: Paged, site: str) -> list[dict[str, Any]]:
    """Current and planned maintenance windows of this site, by number."""
    found = await hub.ledger.read(lambda book: book.silences.of_site(book.sites.one(site).name))
    return page.of(map(asdict, found), "number")


@router.delete("/{site}/silences/{number}", status_code=204)
async def end_maintenance(hub: Hub, site: str, number: Number) -> None:
    """Ends or cancels a maintenance window of this site."""
    await hub.ledger.write(lambda book: book.silences.end(number, site=book.sites.one(site).name))


@router.get("/{site}/alarm-receivers")
async def list_own_receivers(hub: Hub, page: Paged, site: str) -> list[dict[str, Any]]:
    """Alarm receivers of the site itself, by name."""
    found = await hub.ledger.read(lambda book: book.site_receivers.of(book.sites.one(site).name))
    return page.of(map(receiver_out, found), "receiver")


@router.post("/{site}/alarm-receivers", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_own_receiver(hub: Hub, site: str, wanted: OwnReceiver) -> dict[str, Any]:
    """Creates a receiver for the alarms of this site."""
    check_address(wanted.kind, wanted.address)
    receiver = Receiver(
        wanted.receiver,
        wanted.kind,
        wanted.address,
        tuple(wanted.kinds or ()),
        tuple(wanted.feeds or ()),
        severities=severities_told(wanted.severities, wanted.kinds),
    )

    def add(book: Book) -> Receiver:
        return book.site_receivers.add(replace(receiver, owner=book.sites.one(site).name))

    return receiver_out(await hub.ledger.write(add))


@router.delete("/{site}/alarm-receivers/{receiver}", status_code=204)
async def remove_own_receiver(hub: Hub, site: str, receiver: str) -> None:
    """Removes a receiver of this site."""
    await hub.ledger.write(lambda book: book.site_receivers.remove(site, receiver))


@router.post("/{site}/alarm-receivers/{receiver}/test", status_code=204)
async def try_own_receiver(hub: Hub, site: str, receiver: str) -> None:
    """Sends a test notification to a receiver of this site; the problem has the reason if that fails."""
    found = await hub.ledger.read(lambda book: book.site_receivers.one(site, receiver))
    await hub.alarms.tell_as_a_test(found)
