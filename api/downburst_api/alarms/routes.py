"""Routes of alarms: open and past alarms, receivers of notices, silences."""

from typing import Annotated

from fastapi import APIRouter, Query

from downburst.domain.alarms import Alarm, Receiver, Silence, severities_told, silence_of
from downburst.ledger import Transaction
from downburst.network.receiver_addresses import check_address
from downburst_api.alarms import service
from downburst_api.http.pagination import Documented, Paged
from downburst_api.http.parameters import Asking, Hub, Number
from downburst_contract import alarms as shapes

router = APIRouter(prefix="/v1", tags=["alarms"])


@router.get("/alarms")
async def list_alarms(  # noqa: PLR0913
    hub: Hub,
    page: Documented,
    *,
    site: Annotated[str | None, Query(max_length=63)] = None,
    feed: Annotated[str | None, Query(max_length=64)] = None,
    ended: Annotated[bool, Query(description="Include ended alarms, newest first.")] = False,
    cursor: Annotated[int | None, Query(ge=1, le=2**53, description="`next` of the previous page.")] = None,
    after: Annotated[int | None, Query(ge=1, le=2**53, deprecated=True, description="As above.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> shapes.AlarmPage:
    """Open alarms, the most severe first and of those the newest; with `ended` all, newest first, in pages."""

    def look(tx: Transaction) -> tuple[list[Alarm], list[Silence]]:
        found = tx.alerting.alarms.newest(before=cursor or after, limit=limit) if ended else tx.alerting.alarms.open()
        return found, tx.alerting.silences.current()

    found, silences = await hub.ledger.read(look)
    now = hub.clock.now()
    wanted = (one for one in found if site in (None, one.site) and feed in (None, one.feed))
    items = [shapes.Alarm.of(one, silence_of(one, silences, now)) for one in wanted]
    following = found[-1].number if ended and len(found) == limit else None
    return shapes.AlarmPage(items=items, next=page.lead_to(following))


@router.get("/silences")
async def list_silences(hub: Hub, page: Paged) -> list[shapes.Silence]:
    """Active silences."""
    return page.of(map(shapes.Silence.of, await hub.ledger.read(lambda tx: tx.alerting.silences.current())), "number")


@router.post("/silences", status_code=201)
async def add_silence(hub: Hub, caller: Asking, wanted: shapes.SilenceNew) -> shapes.Silence:
    """Creates a silence: its alarms are raised and shown, without notifications."""
    return shapes.Silence.of(await service.silence(hub, wanted, by=caller.name[:80]))


@router.delete("/silences/{number}", status_code=204)
async def end_silence(hub: Hub, number: Number) -> None:
    """Ends a silence; receivers are notified of alarms that are still open."""
    await hub.ledger.write(lambda tx: tx.alerting.silences.end(number))


@router.get("/alarm-receivers")
async def list_receivers(hub: Hub, page: Paged) -> list[shapes.Receiver]:
    """Alarm receivers, by name."""
    return page.of(map(shapes.Receiver.of, await hub.ledger.read(lambda tx: tx.alerting.receivers.all())), "receiver")


@router.get("/site-alarm-receivers")
async def list_site_receivers(
    hub: Hub, page: Paged, site: Annotated[str | None, Query(max_length=63)] = None
) -> list[shapes.SiteReceiver]:
    """Alarm receivers of sites, set by their administrators, by site and name."""
    found = await hub.ledger.read(lambda tx: tx.alerting.site_receivers.all())
    wanted = (one for one in found if site in (None, one.owner))
    return page.of(map(shapes.SiteReceiver.of, wanted), "site_receiver")


@router.post("/alarm-receivers", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_receiver(hub: Hub, wanted: shapes.ReceiverNew) -> shapes.Receiver:
    """Creates a receiver."""
    check_address(wanted.kind, wanted.address)
    receiver = Receiver(
        wanted.receiver,
        wanted.kind,
        wanted.address,
        tuple(wanted.kinds or ()),
        tuple(wanted.feeds or ()),
        tuple(wanted.sites or ()),
        severities_told(wanted.severities, wanted.kinds),
    )
    return shapes.Receiver.of(await hub.ledger.write(lambda tx: tx.alerting.receivers.add(receiver)))


@router.delete("/alarm-receivers/{receiver}", status_code=204)
async def remove_receiver(hub: Hub, receiver: str) -> None:
    """Removes a receiver."""
    await hub.ledger.write(lambda tx: tx.alerting.receivers.remove(receiver))


@router.post("/alarm-receivers/{receiver}/test", status_code=204)
async def try_receiver(hub: Hub, receiver: str) -> None:
    """Sends a test notification to a receiver; the problem has the reason if that fails."""
    found = await hub.ledger.read(lambda tx: tx.alerting.receivers.one(receiver))
    await hub.alarms.tell_as_a_test(found)
