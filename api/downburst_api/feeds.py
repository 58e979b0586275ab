"""Routes of feeds."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from downburst.access import Caller
from downburst.events import FeedsChanged, PinChanged, SubscriptionsChanged
from downburst.ledger import Book
from downburst.model import DuplicateRule, Feed
from downburst_api.guard import caller_of
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import FeedChange, FeedNew, PinNew, feed_out, pin_out

router = APIRouter(prefix="/v1/feeds", tags=["feeds"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]


@router.get("")
async def list_feeds(hub: Hub, caller: Asking) -> list[dict[str, Any]]:
    """Every feed, by name; a site's administrator sees those that the site may take."""
    return [feed_out(feed) for feed in await hub.ledger.read(lambda book: _feeds_for(book, caller))]


@router.post("", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_feed(hub: Hub, wanted: FeedNew) -> dict[str, Any]:
    """Makes a feed."""
    feed = wanted.to_model()
    kept = await hub.ledger.write(lambda book: book.feeds.add(feed))
    await _announce(hub)
    return feed_out(kept)


@router.get("/{feed}")
async def show_feed(hub: Hub, feed: str) -> dict[str, Any]:
    """One feed."""
    return feed_out(await hub.ledger.read(lambda book: book.feeds.one(feed)))


@router.put("/{feed}")
async def put_feed(hub: Hub, feed: str, wanted: FeedChange) -> dict[str, Any]:
    """Makes the feed, or gives it exactly these properties."""
    whole = Feed(feed, **wanted.given())

    kept = await hub.ledger.write(
        lambda book: book.feeds.add(whole) if book.feeds.find(feed) is None else book.feeds.change(whole)
    )
    await _announce(hub)
    return feed_out(kept)


@router.patch("/{feed}")
async def change_feed(hub: Hub, feed: str, wanted: FeedChange) -> dict[str, Any]:
    """Changes the given properties of a feed."""
    kept = await hub.ledger.write(lambda book: book.feeds.change(_changed(book.feeds.one(feed), wanted.given())))
    await _announce(hub)
    return feed_out(kept)


@router.delete("/{feed}", status_code=204)
async def remove_feed(hub: Hub, feed: str) -> None:
    """Forgets a feed and the subscriptions to it."""
    await hub.ledger.write(lambda book: book.feeds.remove(feed))
    hub.live.forget_feed(feed)
    await _announce(hub)
    hub.bus.publish(SubscriptionsChanged())


@router.put("/{feed}/pin")
async def pin_feed(hub: Hub, caller: Asking, feed: str, wanted: PinNew) -> dict[str, Any]:
    """Orders the scheduler to use one transport for a feed, if that is feasible."""

    pin = await hub.ledger.write(
        lambda book: book.pins.set(book.feeds.one(feed).name, wanted.transport, by=wanted.by or caller.name)
    )
    hub.bus.publish(PinChanged(feed))
    return pin_out(pin)


@router.delete("/{feed}/pin", status_code=204)
async def unpin_feed(hub: Hub, feed: str) -> None:
    """Lets the scheduler choose again; a feed without a pin stays as it is."""
    await hub.ledger.write(lambda book: book.pins.remove(book.feeds.one(feed).name))
    hub.bus.publish(PinChanged(feed))


def _changed(feed: Feed, given: dict[str, Any]) -> Feed:
    """A feed that LDMs begin to bring or get takes their rule with that, unless one is named."""
    if given.get("ldm_feed_type") is not None and feed.ldm_feed_type is None:
        given = {"duplicate_rule": DuplicateRule.SIGNATURE} | given
    return replace(feed, **given)


def _feeds_for(book: Book, caller: Caller) -> list[Feed]:
    if caller.site is None:
        return book.feeds.all()
    site = book.sites.one(caller.site)
    return [feed for feed in book.feeds.all() if site.may_take(feed.name)]


async def _announce(hub: Runtime) -> None:
    hub.forget_feeds()
    await hub.node.refresh()
    hub.bus.publish(FeedsChanged())
