"""Products that sites did not store: the exact list of each site's losses."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, delete, func, select, tuple_

from downburst.domain.receipts import ProductException
from downburst.foundation.clock import from_us, to_us
from downburst.foundation.errors import BadInput
from downburst.ledger.storage import limits
from downburst.ledger.storage.partitions import Partitions
from downburst.ledger.storage.rows import put_all
from downburst.ledger.tables.receipts import exceptions


@dataclass(frozen=True, slots=True)
class Lost:
    """A selection of exceptions; None stands for all."""

    outcomes: Sequence[str] = ("expired", "rejected")
    site: str | None = None
    feed: str | None = None
    begin: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExceptionsPage:
    """Some of them, newest first, and the beginning of the next page; None: this was the last page."""

    items: list[ProductException]
    next: str | None


class Exceptions:
    """Products that sites did not store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, *rows: ProductException) -> None:
        """Stores exceptions, of each site the newest; a later outcome of the same product replaces an earlier one."""
        put_all(self._connection, exceptions, (asdict(row) for row in rows))
        for site in sorted({row.site for row in rows}):
            self._trim(site)

    def _trim(self, site: str) -> None:
        """Removes the oldest of a site that has too many: by an index, because it may happen with each batch."""
        limit, of_site = limits.EXCEPTIONS_OF_SITE, exceptions.c.site == site
        limits.lock(self._connection, limit.name, site)
        count = self._connection.scalar(select(func.count()).select_from(exceptions).where(of_site)) or 0
        if count <= limit.most:
            return
        newest = select(exceptions.c.at).where(of_site).order_by(exceptions.c.at.desc())
        oldest_kept = self._connection.scalar(newest.offset(limit.most - 1).limit(1))
        gone = self._connection.execute(delete(exceptions).where(of_site, exceptions.c.at < oldest_kept)).rowcount
        if count - gone > limit.most + limit.most // 10:
            # Very many rows of the site share the same time; to order them takes longer.
            limit.trim(self._connection, exceptions, of_site, by=exceptions.c.at, holder=site)

    def forget_before(self, at: datetime) -> None:
        """Removes older exceptions."""
        Partitions(self._connection).forget_before("exceptions", to_us(at))
        self._connection.execute(delete(exceptions).where(exceptions.c.at < at))

    def recent(self, *, feed: str | None = None, site: str | None = None, limit: int = 100) -> list[ProductException]:
        """The newest exceptions, newest first."""
        return self.page(Lost(feed=feed, site=site), limit=limit).items

    def page(self, lost: Lost, *, after: str | None = None, limit: int = 100) -> ExceptionsPage:
        """One page of the selection, newest first."""
        columns = (exceptions.c.at, exceptions.c.feed, exceptions.c.epoch, exceptions.c.sequence, exceptions.c.site)
        query = _narrowed(lost).order_by(*(column.desc() for column in columns)).limit(limit + 1)
        if after is not None:
            query = query.where(tuple_(*columns) < tuple_(*_cursor(after), types=[column.type for column in columns]))
        found = [ProductException(**row._mapping) for row in self._connection.execute(query)]
        more = len(found) > limit
        return ExceptionsPage(found[:limit], _text(found[limit - 1]) if more else None)

    def of_product(self, feed: str, epoch: str, sequence: int) -> list[ProductException]:
        """The exceptions of one product, one for each site that did not get it."""
        query = select(exceptions).where(
            exceptions.c.feed == feed, exceptions.c.epoch == epoch, exceptions.c.sequence == sequence
        )
        return [ProductException(**row._mapping) for row in self._connection.execute(query)]

    def count(self) -> int:
        """The number of exceptions."""
        return self._connection.scalar(select(func.count()).select_from(exceptions)) or 0


def _narrowed(lost: Lost) -> "Select[tuple[object, ...]]":
    query = select(exceptions).where(exceptions.c.outcome.in_(lost.outcomes))
    if lost.site is not None:
        query = query.where(exceptions.c.site == lost.site)
    if lost.feed is not None:
        query = query.where(exceptions.c.feed == lost.feed)
    if lost.begin is not None:
        query = query.where(exceptions.c.at >= lost.begin)
    if lost.end is not None:
        query = query.where(exceptions.c.at < lost.end)
    return query


def _text(last: ProductException) -> str:
    return f"{to_us(last.at)}/{last.epoch}/{last.sequence}/{last.site}/{last.feed}"


def _cursor(text: str) -> tuple[datetime, str, str, int, str]:
    try:
        at, epoch, sequence, site, feed = text.split("/", 4)
        return from_us(int(at)), feed, epoch, int(sequence), site
    except (ValueError, OverflowError):
        raise BadInput("`after` is not the end of a page; copy `next` from the previous page") from None
