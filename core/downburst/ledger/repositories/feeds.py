"""Feeds in the ledger."""

from dataclasses import asdict, replace
from difflib import get_close_matches

from sqlalchemy import Connection, Row, delete, insert, select, update

from downburst.domain.feeds import DuplicateRule, Durability, Feed, FeedClass
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, UnknownFeed
from downburst.foundation.names import is_feed_name
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.repositories.plans import Legs
from downburst.ledger.storage import limits
from downburst.ledger.tables.feeds import feeds


class Feeds:
    """Feeds by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Feed]:
        """Every feed, by name."""
        query = select(feeds).order_by(feeds.c.name)
        return [_feed(row) for row in self._connection.execute(query) if is_feed_name(row.name)]

    def misnamed(self) -> list[str]:
        """Names that an earlier release accepted and this one does not: such feeds are set aside until removed."""
        return [name for name in self._connection.scalars(select(feeds.c.name)) if not is_feed_name(name)]

    def find(self, name: str) -> Feed | None:
        """The feed, if there is one."""
        row = self._connection.execute(select(feeds).where(feeds.c.name == name)).one_or_none()
        return None if row is None or not is_feed_name(row.name) else _feed(row)

    def one(self, name: str) -> Feed:
        """The feed; the refusal of an unknown name lists similar names."""
        feed = self.find(name)
        if feed is None:
            raise unknown_feed(name, list(self._connection.scalars(select(feeds.c.name))))
        return feed

    def add(self, feed: Feed) -> Feed:
        """Adds a feed with a unicast leg; refuses a name that is taken."""
        if self.find(feed.name) is not None:
            raise AlreadyThere(f"feed {feed.name!r} already exists; change it instead, or choose another name")
        limits.FEEDS.check(self._connection, feeds, holder="this hub")
        kept = replace(feed, unicast_leg=Legs(self._connection).allocate(feed.name), created_at=self._clock.now())
        self._connection.execute(insert(feeds).values(asdict(kept)))
        self._audit.record("feed", feed.name, "added", after=kept)
        return kept

    def change(self, feed: Feed) -> Feed:
        """Updates a feed; its unicast leg and time of creation stay."""
        before = self.one(feed.name)
        kept = replace(feed, unicast_leg=before.unicast_leg, created_at=before.created_at)
        self._connection.execute(update(feeds).where(feeds.c.name == feed.name).values(asdict(kept)))
        self._audit.record("feed", feed.name, "changed", before=before, after=kept)
        return kept

    def remove(self, name: str) -> None:
        """Removes a feed and the subscriptions to it; its plans and latencies stay as history."""
        before = None if name in self.misnamed() else self.one(name)
        self._connection.execute(delete(feeds).where(feeds.c.name == name))
        self._audit.record("feed", name, "removed", before=before)


def unknown_feed(name: str, known: list[str]) -> UnknownFeed:
    """The refusal of an unknown feed, with similar names."""
    upper = {candidate.upper(): candidate for candidate in known}
    near = [upper[match] for match in get_close_matches(name.upper(), upper, n=3, cutoff=0.6)]
    hint = (
        f"did you mean {' or '.join(near)}?" if near else "`downburst feeds list` shows all, `feeds add` creates one"
    )
    return UnknownFeed(f"there is no feed {name!r}; {hint}", near=near)


def _feed(row: Row[tuple[object, ...]]) -> Feed:
    values = dict(row._mapping)
    return Feed(
        **values
        | {
            "feed_class": FeedClass(values["feed_class"]),
            "duplicate_rule": DuplicateRule(values["duplicate_rule"]),
            "durability": Durability(values["durability"]),
        }
    )
