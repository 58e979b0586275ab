"""Routes of feeds."""

from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from downburst.access import Caller
from downburst.errors import DownburstError
from downburst.events import FeedsChanged, PinChanged, SubscriptionsChanged
from downburst.ledger import Book
from downburst.model import DuplicateRule, Feed, Pin
from downburst_api.etags import IfMatch, Unchanged, etag
from downburst_api.guard import caller_of
from downburst_api.pages import Paged
from downburst_api.pinning import check_possible
from downburst_api.rights import feeds_shown
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import FeedChange, FeedNew, PinNew, feed_out, pin_out

router = APIRouter(prefix="/v1/feeds", tags=["feeds"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]


@router.get("")
async def list_feeds(hub: Hub, caller: Asking, page: Paged) -> list[dict[str, Any]]:
    """Every feed, by name; a site's administrator sees those that the site may take."""
    return page.of(map(feed_out, await hub.ledger.read(lambda book: feeds_shown(book, caller))), "feed")


@router.post("", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_feed(hub: Hub, answer: Response, wanted: FeedNew) -> dict[str, Any]:
    """Creates a feed."""
    feed = wanted.to_model()
    kept = await hub.ledger.write(lambda book: book.feeds.add(feed))
    await _begin(hub, kept)
    return _tagged(kept, answer)


@router.get("/{feed}")
async def show_feed(hub: Hub, answer: Response, feed: str) -> dict[str, Any]:
    """One feed."""
    return _tagged(await hub.ledger.read(lambda book: book.feeds.one(feed)), answer)


@router.put("/{feed}")
async def put_feed(hub: Hub, answer: Response, unchanged: Unchanged, feed: str, wanted: FeedChange) -> dict[str, Any]:
    """Creates the feed, or gives it exactly these properties."""
    whole = Feed(feed, **wanted.given())

    def put(book: Book) -> tuple[Feed, bool]:
        found = book.feeds.find(feed)
        unchanged.check(f"feed {feed}", None if found is None else feed_out(found))
        return (book.feeds.add(whole), True) if found is None else (book.feeds.change(whole), False)

    kept, is_new = await hub.ledger.write(put)
    await (_begin(hub, kept) if is_new else _announce(hub))
    return _tagged(kept, answer)


@router.patch("/{feed}")
async def change_feed(
    hub: Hub, answer: Response, unchanged: Unchanged, feed: str, wanted: FeedChange
) -> dict[str, Any]:
    """Changes the given properties of a feed."""

    def change(book: Book) -> Feed:
        return book.feeds.change(_changed(_seen(book, feed, unchanged), wanted.given()))

    kept = await hub.ledger.write(change)
    await _announce(hub)
    return _tagged(kept, answer)


@router.delete("/{feed}", status_code=204)
async def remove_feed(hub: Hub, unchanged: Unchanged, feed: str) -> None:
    """Removes a feed and the subscriptions to it."""

    def remove(book: Book) -> None:
        if feed not in book.feeds.misnamed():
            _seen(book, feed, unchanged)
        book.feeds.remove(feed)

    await hub.ledger.write(remove)
    hub.live.forget_feed(feed)
    await _announce(hub)
    hub.bus.publish(SubscriptionsChanged())


@router.put("/{feed}/pin")
async def pin_feed(
    hub: Hub, caller: Asking, answer: Response, unchanged: Unchanged, feed: str, wanted: PinNew
) -> dict[str, Any]:
    """Orders the scheduler to use one transport for a feed.

    A transport that can't serve the feed's sites is refused (422); one that traffic or paths rule out for now is
    kept.
    """

    def pin(book: Book) -> Pin:
        _check_pin(book, feed, unchanged)
        check_possible(book, hub.settings, feed, wanted.transport)
        return book.pins.set(book.feeds.one(feed).name, wanted.transport, by=wanted.by or caller.name)

    shown = pin_out(await hub.ledger.write(pin))
    hub.bus.publish(PinChanged(feed))
    answer.headers["etag"] = etag(shown)
    return shown


@router.delete("/{feed}/pin", status_code=204)
async def unpin_feed(hub: Hub, unchanged: Unchanged, feed: str) -> None:
    """Lets the scheduler choose again; a feed without a pin stays as it is."""

    def unpin(book: Book) -> None:
        _check_pin(book, feed, unchanged)
        book.pins.remove(book.feeds.one(feed).name)

    await hub.ledger.write(unpin)
    hub.bus.publish(PinChanged(feed))


def _tagged(feed: Feed, answer: Response) -> dict[str, Any]:
    shown = feed_out(feed)
    answer.headers["etag"] = etag(shown)
    return shown


def _seen(book: Book, name: str, unchanged: IfMatch) -> Feed:
    """The feed that a change is made to, if it is the one that was seen."""
    feed = book.feeds.one(name)
    unchanged.check(f"feed {name}", feed_out(feed))
    return feed


def _check_pin(book: Book, feed: str, unchanged: IfMatch) -> None:
    pin = book.pins.find(book.feeds.one(feed).name)
    unchanged.check(f"the pin of feed {feed}", None if pin is None else pin_out(pin))


def _changed(feed: Feed, given: dict[str, Any]) -> Feed:
    """A feed that LDMs begin to bring or get takes their rule with that, unless one is named."""
    if given.get("ldm_feed_type") is not None and feed.ldm_feed_type is None:
        given = {"duplicate_rule": DuplicateRule.SIGNATURE} | given
    return replace(feed, **given)


async def _begin(hub: Runtime, feed: Feed) -> None:
    """Has the node begin a new feed; nothing is left of one that it can't begin, and other feeds go on."""
    try:
        await _announce(hub)
    except DownburstError:
        await hub.ledger.write(lambda book: book.feeds.remove(feed.name))
        with suppress(DownburstError):
            await _announce(hub)
        raise


async def _announce(hub: Runtime) -> None:
    hub.forget_feeds()
    await hub.node.refresh()
    hub.bus.publish(FeedsChanged())
