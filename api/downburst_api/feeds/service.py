"""What becomes of a feed: a new one that the node begins, changes that it hears of, pins that can be met."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from downburst.errors import DownburstError
from downburst.events import FeedsChanged, SubscriptionsChanged
from downburst.ledger import Book
from downburst.model import DuplicateRule, Feed, Pin, Transport
from downburst_api.feeds.pinning import check_possible
from downburst_api.http.etags import IfMatch
from downburst_api.runtime import Runtime
from downburst_contract import feeds as shapes


async def add(hub: Runtime, feed: Feed) -> Feed:
    """Creates a feed."""
    kept = await hub.ledger.write(lambda book: book.feeds.add(feed))
    await _begin(hub, kept)
    return kept


async def put(hub: Runtime, feed: Feed, unchanged: IfMatch) -> Feed:
    """Creates a feed, or gives it exactly these properties."""

    def write(book: Book) -> tuple[Feed, bool]:
        found = book.feeds.find(feed.name)
        unchanged.check(f"feed {feed.name}", None if found is None else shapes.Feed.of(found))
        return (book.feeds.add(feed), True) if found is None else (book.feeds.change(feed), False)

    kept, is_new = await hub.ledger.write(write)
    await (_begin(hub, kept) if is_new else _announce(hub))
    return kept


async def change(hub: Runtime, feed: str, given: dict[str, Any], unchanged: IfMatch) -> Feed:
    """Changes the given properties of a feed."""
    kept = await hub.ledger.write(lambda book: book.feeds.change(_changed(_seen(book, feed, unchanged), given)))
    await _announce(hub)
    return kept


async def remove(hub: Runtime, feed: str, unchanged: IfMatch) -> None:
    """Removes a feed and the subscriptions to it."""

    def write(book: Book) -> None:
        if feed not in book.feeds.misnamed():
            _seen(book, feed, unchanged)
        book.feeds.remove(feed)

    await hub.ledger.write(write)
    hub.live.forget_feed(feed)
    await _announce(hub)
    hub.bus.publish(SubscriptionsChanged())


async def pin(hub: Runtime, feed: str, transport: Transport, unchanged: IfMatch, *, by: str) -> Pin:
    """Orders one transport for a feed; one that can't serve its sites is refused."""

    def write(book: Book) -> Pin:
        _check_pin(book, feed, unchanged)
        check_possible(book, hub.settings, feed, transport)
        return book.pins.set(book.feeds.one(feed).name, transport, by=by)

    return await hub.ledger.write(write)


async def unpin(hub: Runtime, feed: str, unchanged: IfMatch) -> None:
    """Lets the scheduler choose again."""

    def write(book: Book) -> None:
        _check_pin(book, feed, unchanged)
        book.pins.remove(book.feeds.one(feed).name)

    await hub.ledger.write(write)


def _seen(book: Book, name: str, unchanged: IfMatch) -> Feed:
    """The feed that a change is made to, if it is the one that was seen."""
    feed = book.feeds.one(name)
    unchanged.check(f"feed {name}", shapes.Feed.of(feed))
    return feed


def _check_pin(book: Book, feed: str, unchanged: IfMatch) -> None:
    found = book.pins.find(book.feeds.one(feed).name)
    unchanged.check(f"the pin of feed {feed}", None if found is None else shapes.Pin.of(found))


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
