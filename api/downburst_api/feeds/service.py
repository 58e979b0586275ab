"""Changes to feeds: the node begins new ones and is notified of changes, and pins are checked."""

from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Any

from downburst.domain.events import FeedsChanged, SubscriptionsChanged
from downburst.domain.feeds import DuplicateRule, Feed
from downburst.domain.plans import Pin, Transport
from downburst.foundation.errors import DownburstError
from downburst.ledger import Transaction
from downburst_api.feeds.pinning import check_possible
from downburst_api.http.etags import IfMatch
from downburst_api.runtime import Runtime
from downburst_contract import feeds as shapes


async def add(hub: Runtime, feed: Feed) -> Feed:
    """Creates a feed."""
    kept = await hub.ledger.write(lambda tx: tx.feeds.add(feed))
    await _begin(hub, kept)
    return kept


async def put(hub: Runtime, feed: Feed, unchanged: IfMatch) -> Feed:
    """Creates a feed, or gives it exactly these properties."""

    def write(tx: Transaction) -> tuple[Feed, bool]:
        found = tx.feeds.find(feed.name)
        unchanged.check(f"feed {feed.name}", None if found is None else shapes.Feed.of(found))
        return (tx.feeds.add(feed), True) if found is None else (tx.feeds.change(feed), False)

    kept, is_new = await hub.ledger.write(write)
    await (_begin(hub, kept) if is_new else _announce(hub))
    return kept


async def change(hub: Runtime, feed: str, given: dict[str, Any], unchanged: IfMatch) -> Feed:
    """Changes the given properties of a feed."""
    kept = await hub.ledger.write(lambda tx: tx.feeds.change(_changed(_seen(tx, feed, unchanged), given)))
    await _announce(hub)
    return kept


def outcomes(tx: Transaction, *, feed: str) -> list[shapes.Outcomes]:
    """The outcomes of the feed's products, by site."""
    rows = tx.measured.settled.of_feed(tx.feeds.one(feed).name)
    return [shapes.Outcomes.of(site, of_site) for site, of_site in groupby(rows, key=lambda row: row.site)]


async def remove(hub: Runtime, feed: str, unchanged: IfMatch) -> None:
    """Removes a feed and the subscriptions to it."""

    def write(tx: Transaction) -> None:
        if feed not in tx.feeds.misnamed():
            _seen(tx, feed, unchanged)
        tx.feeds.remove(feed)

    await hub.ledger.write(write)
    hub.live.forget_feed(feed)
    await _announce(hub)
    hub.bus.publish(SubscriptionsChanged())


async def pin(hub: Runtime, feed: str, transport: Transport, unchanged: IfMatch, *, by: str) -> Pin:
    """Pins a feed to one transport; refuses one that can't serve the feed's sites."""

    def write(tx: Transaction) -> Pin:
        _check_pin(tx, feed, unchanged)
        check_possible(tx, hub.settings, feed, transport)
        return tx.planning.pins.set(tx.feeds.one(feed).name, transport, by=by)

    return await hub.ledger.write(write)


async def unpin(hub: Runtime, feed: str, unchanged: IfMatch) -> None:
    """Lets the scheduler choose again."""

    def write(tx: Transaction) -> None:
        _check_pin(tx, feed, unchanged)
        tx.planning.pins.remove(tx.feeds.one(feed).name)

    await hub.ledger.write(write)


def _seen(tx: Transaction, name: str, unchanged: IfMatch) -> Feed:
    """The feed to change, if its tag matches."""
    feed = tx.feeds.one(name)
    unchanged.check(f"feed {name}", shapes.Feed.of(feed))
    return feed


def _check_pin(tx: Transaction, feed: str, unchanged: IfMatch) -> None:
    found = tx.planning.pins.find(tx.feeds.one(feed).name)
    unchanged.check(f"the pin of feed {feed}", None if found is None else shapes.Pin.of(found))


def _changed(feed: Feed, given: dict[str, Any]) -> Feed:
    """Sets the LDM rule of a feed that LDMs begin to bring or get, unless the client names a rule."""
    if given.get("ldm_feed_type") is not None and feed.ldm_feed_type is None:
        given = {"duplicate_rule": DuplicateRule.SIGNATURE} | given
    return replace(feed, **given)


async def _begin(hub: Runtime, feed: Feed) -> None:
    """Has the node begin a new feed; one that fails to begin is removed, and other feeds go on."""
    try:
        await _announce(hub)
    except DownburstError:
        await hub.ledger.write(lambda tx: tx.feeds.remove(feed.name))
        with suppress(DownburstError):
            await _announce(hub)
        raise


async def _announce(hub: Runtime) -> None:
    hub.forget_feeds()
    await hub.node.refresh()
    hub.bus.publish(FeedsChanged())
