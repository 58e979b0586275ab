"""Routes of feeds and pins."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from downburst.domain.events import PinChanged
from downburst.domain.feeds import Feed
from downburst.foundation.moments import moment
from downburst_api.border.site_rights import feeds_shown
from downburst_api.feeds import service
from downburst_api.feeds.seconds import COLUMNS, row_of, shape_of
from downburst_api.http.etags import Unchanged, tagged
from downburst_api.http.pagination import Cursor, Paged, page_of, read_cursor
from downburst_api.http.parameters import Asking, Hub
from downburst_api.http.spreadsheet import Asked, Form, csv_answer
from downburst_contract import feeds as shapes

router = APIRouter(prefix="/v1/feeds", tags=["feeds"])


@router.get("")
async def list_feeds(hub: Hub, caller: Asking, page: Paged) -> list[shapes.Feed]:
    """Every feed, by name; a site's administrator sees those that the site may take."""
    return page.of(map(shapes.Feed.of, await hub.ledger.read(lambda tx: feeds_shown(tx, caller))), "feed")


@router.post("", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_feed(hub: Hub, answer: Response, wanted: shapes.FeedNew) -> shapes.Feed:
    """Creates a feed."""
    return tagged(shapes.Feed.of(await service.add(hub, wanted.to_model())), answer)


@router.get("/{feed}")
async def show_feed(hub: Hub, answer: Response, feed: str) -> shapes.Feed:
    """One feed."""
    return tagged(shapes.Feed.of(await hub.ledger.read(lambda tx: tx.feeds.one(feed))), answer)


@router.put("/{feed}")
async def put_feed(
    hub: Hub, answer: Response, unchanged: Unchanged, feed: str, wanted: shapes.FeedChange
) -> shapes.Feed:
    """Creates the feed, or gives it exactly these properties."""
    return tagged(shapes.Feed.of(await service.put(hub, Feed(feed, **wanted.given()), unchanged)), answer)


@router.patch("/{feed}")
async def change_feed(
    hub: Hub, answer: Response, unchanged: Unchanged, feed: str, wanted: shapes.FeedChange
) -> shapes.Feed:
    """Changes the given properties of a feed."""
    return tagged(shapes.Feed.of(await service.change(hub, feed, wanted.given(), unchanged)), answer)


@router.delete("/{feed}", status_code=204)
async def remove_feed(hub: Hub, unchanged: Unchanged, feed: str) -> None:
    """Removes a feed and the subscriptions to it."""
    await service.remove(hub, feed, unchanged)


@router.get("/{feed}/outcomes")
async def list_outcomes(hub: Hub, feed: str, page: Paged) -> list[shapes.Outcomes]:
    """The outcomes of a feed's products at each site: for a feed with a deadline, how many were in time."""
    return page.of(await hub.ledger.read(partial(service.outcomes, feed=feed)), "site")


@router.get("/{feed}/catch-ups")
async def list_catch_ups(hub: Hub, feed: str, page: Paged) -> list[shapes.CatchUp]:
    """The last streams by which several sites caught up on the feed together, since the hub started; newest first."""
    await hub.ledger.read(lambda tx: tx.feeds.one(feed))
    return page.of(map(shapes.CatchUp.of, hub.live.catch_ups.of_feed(feed)), "to_sequence", falling=True)


@router.get("/{feed}/seconds", response_model=list[shapes.FeedSecond], responses={404: {}})
async def list_feed_seconds(  # noqa: PLR0913
    hub: Hub,
    asked: Request,
    answer: Response,
    *,
    feed: str,
    site: str | None = None,
    since: Annotated[
        str, Query(max_length=64, description="RFC 3339, or how long ago: `10m`; an hour is kept.")
    ] = "10m",
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=3_600, description="The maximum number of seconds.")] = 600,
    form: Asked,
) -> list[shapes.FeedSecond] | Response:
    """Seconds of a feed with a deadline at its sites, newest first: records by outcome, reordering, delay, jitter."""
    begin = int(moment(since, hub.clock.now()).timestamp())
    before = None if cursor is None else read_cursor(cursor, int, str)
    found = await hub.ledger.read(
        lambda tx: tx.measured.feed_seconds.of_feed(
            tx.feeds.one(feed).name, site=site, since=begin, before=before, limit=limit + 1
        )
    )
    listed = page_of([shape_of(one) for one in found], limit, ("second", "site"), answer, asked)
    if form is Form.CSV:
        return csv_answer(f"{feed}-seconds", [row_of(one) for one in listed], COLUMNS)
    return listed


@router.put("/{feed}/pin")
async def pin_feed(
    hub: Hub, caller: Asking, answer: Response, unchanged: Unchanged, *, feed: str, wanted: shapes.PinNew
) -> shapes.Pin:
    """Orders the scheduler to use one transport for a feed.

    A transport that can't serve the feed's sites is refused (422); one that traffic or paths rule out for now is
    kept.
    """
    pin = await service.pin(hub, feed, wanted.transport, unchanged, by=wanted.by or caller.name)
    hub.bus.publish(PinChanged(feed))
    return tagged(shapes.Pin.of(pin), answer)


@router.delete("/{feed}/pin", status_code=204)
async def unpin_feed(hub: Hub, unchanged: Unchanged, feed: str) -> None:
    """Lets the scheduler choose again; a feed without a pin stays as it is."""
    await service.unpin(hub, feed, unchanged)
    hub.bus.publish(PinChanged(feed))
