"""Changes by a site's administrator: the registered endpoint, windows of maintenance, own receivers."""

from dataclasses import replace

from fastapi import APIRouter

from downburst.domain.alarms import Receiver, Silence, severities_told
from downburst.domain.sites import Site
from downburst.ledger import Transaction
from downburst.network.receiver_addresses import check_address
from downburst_api.alarms.service import window
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Asking, Hub, Number
from downburst_api.sites.service import announce
from downburst_contract import alarms as shapes
from downburst_contract.sites import EndpointChange
from downburst_contract.sites import Site as SiteShown

router = APIRouter(prefix="/v1/sites", tags=["self-service"])


@router.put("/{site}/endpoint")
async def register_endpoint(hub: Hub, site: str, wanted: EndpointChange) -> SiteShown:
    """Changes a site's own properties: organisation, contact, place, interface, circuit attachment, rates."""
    given = wanted.given()

    def change(tx: Transaction) -> Site:
        return tx.sites.change(replace(tx.sites.one(site), **given))

    kept = await hub.ledger.write(change)
    await announce(hub)
    return SiteShown.of(kept)


@router.post("/{site}/silences", status_code=201)
async def begin_maintenance(hub: Hub, caller: Asking, site: str, wanted: shapes.Maintenance) -> shapes.Silence:
    """Creates a maintenance window of this site: its alarms are not notified."""
    begins, until = window(wanted.begins, wanted.minutes, hub.clock.now())

    def begin(tx: Transaction) -> Silence:
        name = tx.sites.one(site).name
        return tx.alerting.silences.add(Silence(0, until, caller.name[:80], wanted.reason, site=name, begins=begins))

    return shapes.Silence.of(await hub.ledger.write(begin))


@router.get("/{site}/silences")
async def list_maintenance(hub: Hub, page: Paged, site: str) -> list[shapes.Silence]:
    """Current and planned maintenance windows of this site, by number."""
    found = await hub.ledger.read(lambda tx: tx.alerting.silences.of_site(tx.sites.one(site).name))
    return page.of(map(shapes.Silence.of, found), "number")


@router.delete("/{site}/silences/{number}", status_code=204)
async def end_maintenance(hub: Hub, site: str, number: Number) -> None:
    """Ends or cancels a maintenance window of this site."""
    await hub.ledger.write(lambda tx: tx.alerting.silences.end(number, site=tx.sites.one(site).name))


@router.get("/{site}/alarm-receivers")
async def list_own_receivers(hub: Hub, page: Paged, site: str) -> list[shapes.Receiver]:
    """Alarm receivers of the site itself, by name."""
    found = await hub.ledger.read(lambda tx: tx.alerting.site_receivers.of(tx.sites.one(site).name))
    return page.of(map(shapes.Receiver.of, found), "receiver")


@router.post("/{site}/alarm-receivers", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_own_receiver(hub: Hub, site: str, wanted: shapes.OwnReceiver) -> shapes.Receiver:
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

    def add(tx: Transaction) -> Receiver:
        return tx.alerting.site_receivers.add(replace(receiver, owner=tx.sites.one(site).name))

    return shapes.Receiver.of(await hub.ledger.write(add))


@router.delete("/{site}/alarm-receivers/{receiver}", status_code=204)
async def remove_own_receiver(hub: Hub, site: str, receiver: str) -> None:
    """Removes a receiver of this site."""
    await hub.ledger.write(lambda tx: tx.alerting.site_receivers.remove(site, receiver))


@router.post("/{site}/alarm-receivers/{receiver}/test", status_code=204)
async def try_own_receiver(hub: Hub, site: str, receiver: str) -> None:
    """Sends a test notification to a receiver of this site; the problem has the reason if that fails."""
    found = await hub.ledger.read(lambda tx: tx.alerting.site_receivers.one(site, receiver))
    await hub.alarms.tell_as_a_test(found)
