"""Routes of alarms: what is wrong and was, whom to tell, and what not to tell for a while."""

from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from downburst.access import Caller
from downburst.alarms import Alarm, AlarmKind, Receiver, ReceiverKind, Severity, Silence, severities_told, silence_of
from downburst.errors import BadInput
from downburst.ledger import Book
from downburst.moments import coming_moment
from downburst.network.receiver_addresses import check_address
from downburst_api.guard import caller_of
from downburst_api.pages import Documented, Paged
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import Shape

router = APIRouter(prefix="/v1", tags=["alarms"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]
Number = Annotated[int, Path(ge=1, le=2**53)]
Begins = Annotated[str, Field(max_length=64)] | None
"""RFC 3339 with an offset, or how long from now: `+2h`."""
_Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=1000)]


class SilenceNew(Shape):
    """Alarms that nobody is told of for a while: a single one that goes on, or those of a kind, feed and site."""

    minutes: Annotated[float, Field(gt=0, le=60 * 24 * 366)]
    reason: Annotated[str, Field(max_length=500)] = ""
    alarm: Annotated[int, Field(ge=1, le=2**53)] | None = None
    """Number of an alarm that goes on: it alone, whenever it begins again. Kind, feed and site are its own then."""
    kind: AlarmKind | None = None
    feed: Annotated[str, Field(max_length=64)] | None = None
    site: Annotated[str, Field(max_length=63)] | None = None
    begins: Begins = None
    """When; now, if left out."""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"alarm", "kind", "feed", "site"}


class ReceiverNew(Shape):
    """Whom to tell; empty lists stand for all. Without severities and kinds: of all but information."""

    receiver: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.-]+$")]
    kind: ReceiverKind
    address: Annotated[str, Field(min_length=3, max_length=2000)]
    kinds: Annotated[list[AlarmKind], Field(max_length=20)] | None = None
    feeds: _Names | None = None
    sites: _Names | None = None
    severities: Annotated[list[Severity], Field(max_length=len(Severity))] | None = None


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
) -> dict[str, Any]:
    """Open alarms, the most severe first and of those the newest; with `ended` all, newest first, in pages."""

    def look(book: Book) -> tuple[list[Alarm], list[Silence]]:
        found = book.alarms.newest(before=cursor or after, limit=limit) if ended else book.alarms.open()
        return found, book.silences.current()

    found, silences = await hub.ledger.read(look)
    now = hub.clock.now()
    items = [_alarm_out(one, silences, now) for one in found if site in (None, one.site) and feed in (None, one.feed)]
    return page.of(items, found[-1].number if ended and len(found) == limit else None)


@router.get("/silences")
async def list_silences(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """Active silences."""
    return page.of(map(asdict, await hub.ledger.read(lambda book: book.silences.current())), "number")


@router.post("/silences", status_code=201)
async def add_silence(hub: Hub, caller: Asking, wanted: SilenceNew) -> dict[str, Any]:
    """Creates a silence: its alarms are raised and shown, without notifications."""
    begins, until = window(wanted.begins, wanted.minutes, hub.clock.now())
    if wanted.alarm is not None and {wanted.kind, wanted.feed, wanted.site} != {None}:
        raise BadInput("an alarm has its kind, feed and site already; leave them out, or leave `alarm` out")
    silence = Silence(0, until, caller.name[:80], wanted.reason, wanted.kind, wanted.feed, wanted.site, begins)

    def add(book: Book) -> Silence:
        if wanted.alarm is None:
            return book.silences.add(silence)
        one = book.alarms.find_open(wanted.alarm)
        return book.silences.add(replace(silence, kind=one.kind, feed=one.feed, site=one.site, alarm_key=one.key))

    return asdict(await hub.ledger.write(add))


@router.delete("/silences/{number}", status_code=204)
async def end_silence(hub: Hub, number: Number) -> None:
    """Ends a silence; receivers are notified of alarms that are still open."""
    await hub.ledger.write(lambda book: book.silences.end(number))


@router.get("/alarm-receivers")
async def list_receivers(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """Alarm receivers, by name."""
    return page.of(map(receiver_out, await hub.ledger.read(lambda book: book.alarm_receivers.all())), "receiver")


@router.get("/site-alarm-receivers")
async def list_site_receivers(
    hub: Hub, page: Paged, site: Annotated[str | None, Query(max_length=63)] = None
) -> list[dict[str, Any]]:
    """Alarm receivers of sites, set by their administrators, by site and name."""
    found = await hub.ledger.read(lambda book: book.site_receivers.all())
    wanted = (one for one in found if site in (None, one.owner))
    named = ({"site_receiver": f"{one.owner}/{one.name}", "site": one.owner, **receiver_out(one)} for one in wanted)
    return page.of(named, "site_receiver")


@router.post("/alarm-receivers", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_receiver(hub: Hub, wanted: ReceiverNew) -> dict[str, Any]:
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
    return receiver_out(await hub.ledger.write(lambda book: book.alarm_receivers.add(receiver)))


@router.delete("/alarm-receivers/{receiver}", status_code=204)
async def remove_receiver(hub: Hub, receiver: str) -> None:
    """Removes a receiver."""
    await hub.ledger.write(lambda book: book.alarm_receivers.remove(receiver))


@router.post("/alarm-receivers/{receiver}/test", status_code=204)
async def try_receiver(hub: Hub, receiver: str) -> None:
    """Sends a test notification to a receiver; the problem has the reason if that fails."""
    found = await hub.ledger.read(lambda book: book.alarm_receivers.one(receiver))
    await hub.alarms.tell_as_a_test(found)


def _alarm_out(alarm: Alarm, silences: list[Silence], now: datetime) -> dict[str, Any]:
    values = asdict(alarm)
    for name in ("key", "end_told_at"):
        del values[name]
    silence = silence_of(alarm, silences, now)
    silenced = {"silenced_until": silence.until if silence else None, "silence": silence}
    return {"alarm": values.pop("number"), **values, **silenced}


def receiver_out(receiver: Receiver) -> dict[str, Any]:
    """A receiver as it is told."""
    values = asdict(receiver)
    return {"receiver": values.pop("name"), **values}


def window(begins: str | None, minutes: float, now: datetime) -> tuple[datetime | None, datetime]:
    """Begin and end of what is silenced; the begin is None for what begins at once."""
    begin = None if begins is None else coming_moment(begins, now)
    if begin is not None and begin + timedelta(minutes=minutes) <= now:
        raise BadInput("the window is over already; correct `begins` or `minutes`")
    return begin, (begin or now) + timedelta(minutes=minutes)
