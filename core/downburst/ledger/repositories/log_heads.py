"""The highest number of each feed's log, stored outside the log: an older copy of the log can't know it."""

from collections.abc import Iterable
from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select, update

from downburst.domain.receipts import LogHead
from downburst.foundation.clock import Clock
from downburst.ledger.storage.rows import same_key
from downburst.ledger.tables.receipts import heads


class LogHeads:
    """The highest known number by feed and epoch."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def all(self) -> list[LogHead]:
        """All heads, by feed, the last to rise first."""
        query = select(heads.c.feed, heads.c.epoch, heads.c.sequence)
        return [LogHead(*row) for row in self._connection.execute(query.order_by(heads.c.feed, heads.c.at.desc()))]

    def rise(self, seen: Iterable[LogHead]) -> None:
        """Stores heads that are higher than before; those of removed feeds stay, as their logs may."""
        for head in seen:
            if head.sequence > 0:
                self._rise(head)

    def _rise(self, head: LogHead) -> None:
        row = asdict(head)
        here = same_key(heads, row)
        known = self._connection.scalar(select(heads.c.sequence).where(here))
        row["at"] = self._clock.now()
        if known is None:
            self._connection.execute(insert(heads).values(row))
            self._forget(head.feed)
        elif head.sequence > known:
            self._connection.execute(update(heads).where(here).values(row))

    def _forget(self, feed: str) -> None:
        of_feed = select(heads.c.epoch).where(heads.c.feed == feed).order_by(heads.c.at.desc(), heads.c.epoch)
        old = list(self._connection.scalars(of_feed.offset(EPOCHS_REMEMBERED)))
        self._connection.execute(delete(heads).where(heads.c.feed == feed, heads.c.epoch.in_(old)))


# A log begins another epoch only when it is lost; a backup from so many losses ago is not restored.
EPOCHS_REMEMBERED = 8
