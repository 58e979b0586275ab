"""What is checked before a site is promised anything."""

from downburst.errors import BadPattern, Refused
from downburst.ledger import Book
from downburst_api.runtime import Node


def check_right(book: Book, site: str, feed: str) -> None:
    """Refuses a feed that the site's allow list does not cover."""
    allowed = book.sites.one(site)
    if not allowed.may_take(book.feeds.one(feed).name):
        raise Refused(
            f"site {site!r} may not take feed {feed!r}: its allow list is {', '.join(allowed.allow) or 'empty'}; "
            "extend the list, or choose another feed",
            allow=list(allowed.allow),
        )


async def check_pattern(node: Node, field: str, pattern: str) -> None:
    """Refuses a pattern that the node can't use; the problem names the field and the position."""
    try:
        await node.check_pattern(pattern)
    except BadPattern as error:
        raise BadPattern(error.sentence, **error.extra, field=field) from error
