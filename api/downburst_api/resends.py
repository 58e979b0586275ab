"""Routes of resends: stored products to a site once more."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from downburst.access import who_acts
from downburst.errors import BadInput, Refused
from downburst.events import ResendsChanged
from downburst.ledger import Book
from downburst.model import IdFilter, Resend
from downburst.moments import moment
from downburst_api.pages import NewestPaged
from downburst_api.rights import check_pattern, check_right
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import ResendNew, resend_out

router = APIRouter(prefix="/v1", tags=["resends"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Number = Annotated[int, Path(ge=1, le=2**53)]


@router.post("/resends", status_code=201, responses={403: {}, 422: {}})
async def add_resend(hub: Hub, wanted: ResendNew) -> dict[str, Any]:
    """Sends products in a feed's log to a site again, by a range of time; it waits while the site is offline."""
    await hub.ledger.read(lambda book: check_right(book, wanted.site, wanted.feed))
    await check_pattern(hub.node, "pattern", wanted.pattern)
    if wanted.not_pattern is not None:
        await check_pattern(hub.node, "not_pattern", wanted.not_pattern)
    resend = _resend(hub, wanted)
    kept = await hub.ledger.write(lambda book: _keep(book, resend))
    await _announce(hub)
    return resend_out(kept)


@router.get("/resends")
async def list_resends(
    hub: Hub,
    page: NewestPaged,
    site: str | None = None,
    feed: str | None = None,
) -> list[dict[str, Any]]:
    """The newest resends, newest first."""
    found = await hub.ledger.read(
        lambda book: book.resends.newest(site=site, feed=feed, before=page.before, limit=page.to_read)
    )
    return page.of([resend_out(resend) for resend in found], "id")


@router.get("/resends/{resend}")
async def show_resend(hub: Hub, resend: Number) -> dict[str, Any]:
    """One resend."""
    return resend_out(await hub.ledger.read(lambda book: book.resends.one(resend)))


@router.delete("/resends/{resend}")
async def cancel_resend(hub: Hub, resend: Number) -> dict[str, Any]:
    """Cancels a resend; delivered products stay."""
    ended = await hub.ledger.write(lambda book: book.resends.cancel(resend))
    await _announce(hub)
    return resend_out(ended)


def _resend(hub: Runtime, wanted: ResendNew) -> Resend:
    now = hub.clock.now()
    begin, end = moment(wanted.from_at, now), moment(wanted.to_at, now)
    if begin >= end:
        raise BadInput(f"the resend ends at {end:%Y-%m-%d %H:%M:%S} UTC, before it begins; swap `from` and `to`")
    # What comes in from now on is live.
    return Resend(
        0,
        wanted.site,
        wanted.feed,
        begin,
        min(end, now),
        wanted=IdFilter(wanted.pattern, wanted.not_pattern),
        requested_by=wanted.by or who_acts().name,
    )


def _keep(book: Book, resend: Resend) -> Resend:
    check_right(book, resend.site, resend.feed)
    if all(wish.feed != resend.feed for wish in book.subscriptions.of_site(resend.site)):
        raise Refused(
            f"site {resend.site!r} does not subscribe to {resend.feed!r}; use a subscription that begins in the "
            f"past: downburst subscriptions add {resend.site} '{resend.feed}' --start 2h"
        )
    return book.resends.add(resend)


async def _announce(hub: Runtime) -> None:
    await hub.node.refresh()
    hub.bus.publish(ResendsChanged())
