"""Checks of a site's rights, before it is granted or shown anything."""

from downburst.domain.access import Caller
from downburst.domain.feeds import Feed
from downburst.foundation.errors import BadPattern, Refused
from downburst.ledger import Transaction
from downburst.ledger.repositories.feeds import unknown_feed
from downburst_api.runtime import Node


def feeds_shown(tx: Transaction, caller: Caller) -> list[Feed]:
    """The feeds visible to a caller, by name: those of its site, or all."""
    feeds = tx.feeds.all()
    if caller.site is None:
        return feeds
    site = tx.sites.one(caller.site)
    return [feed for feed in feeds if site.may_take(feed.name)]


def check_feed_shown(tx: Transaction, caller: Caller, feed: str) -> None:
    """Answers for a feed hidden from the caller as for one that does not exist."""
    shown = [one.name for one in feeds_shown(tx, caller)]
    if feed not in shown:
        raise unknown_feed(feed, shown)


def check_right(tx: Transaction, site: str, feed: str, caller: Caller | None = None) -> None:
    """Refuses a feed outside the site's allow list; the site's administrator learns of no other feeds."""
    allowed = tx.sites.one(site)
    if caller is None or caller.site is None:
        tx.feeds.one(feed)
    if not allowed.may_take(feed):
        raise Refused(
            f"site {site!r} may not take feed {feed!r}: its allow list is {', '.join(allowed.allow) or 'empty'}; "
            "extend the list, or choose another feed",
            allow=list(allowed.allow),
        )
    if tx.feeds.find(feed) is None:
        raise unknown_feed(feed, [one.name for one in tx.feeds.all() if allowed.may_take(one.name)])


async def check_pattern(node: Node, field: str, pattern: str) -> None:
    """Refuses a pattern that the node can't use; the problem names the field and the position."""
    try:
        await node.check_pattern(pattern)
    except BadPattern as error:
        raise BadPattern(error.sentence, **error.extra, field=field) from error
