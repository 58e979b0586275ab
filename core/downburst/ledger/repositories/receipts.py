"""Reports of sites: latencies as sketches, frontiers, exceptions, seconds; loaded in batches, each once."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, or_, select

from downburst.domain.receipts import Batch, Settled
from downburst.foundation.bounds import INTEGER_MAX, PRODUCTS_MAX
from downburst.foundation.clock import Clock
from downburst.ledger.repositories.exceptions import Exceptions
from downburst.ledger.repositories.latency.history import Latency
from downburst.ledger.repositories.latency.seconds import FeedSeconds
from downburst.ledger.storage.rows import found, key_of, put_all
from downburst.ledger.tables.receipts import batches, settled


class Batches:
    """Batches from the node."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def load(self, batch: Batch) -> bool:
        """Stores the whole batch with its id in one transaction; a batch that was loaded before changes nothing."""
        if self._connection.scalar(select(batches.c.number).where(batches.c.batch == batch.id)) is not None:
            return False
        at = self._clock.now()
        key = self._connection.execute(insert(batches).values(batch=batch.id, loaded_at=at)).inserted_primary_key
        Latency(self._connection).add(*batch.sketches)
        Frontiers(self._connection).advance(*batch.settled, at=at)
        Exceptions(self._connection).add(*batch.exceptions)
        FeedSeconds(self._connection).add(*batch.seconds, at=at)
        if key is not None:
            self._forget_before(int(key[0]) - BATCHES_REMEMBERED)
        return True

    def _forget_before(self, number: int) -> None:
        self._connection.execute(delete(batches).where(batches.c.number <= number))


@dataclass(frozen=True, slots=True)
class Received:
    """A site's totals over all feeds."""

    stored: int
    """Products."""
    last_receipt_at: datetime | None


class LossKey(NamedTuple):
    """The key under which losses are counted."""

    feed: str
    site: str
    epoch: str
    outcome: str


class Frontiers:
    """The progress of each site with each feed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[Settled]:
        """Every frontier with the counts of its epoch."""
        query = select(settled).order_by(settled.c.feed, settled.c.site, settled.c.epoch)
        return [Settled(**row._mapping) for row in self._connection.execute(query)]

    def by_site(self) -> dict[str, Received]:
        """Totals of each site, summed by the database: a page queries every second, and each feed has a row."""
        sums = func.sum(settled.c.stored), func.max(settled.c.last_receipt_at)
        query = select(settled.c.site, *sums).group_by(settled.c.site)
        return {site: Received(int(stored), last) for site, stored, last in self._connection.execute(query)}

    def losses(self) -> dict[LossKey, int]:
        """Products that sites did not get, for sites with losses."""
        lost = or_(settled.c.rejected > 0, settled.c.expired > 0)
        columns = settled.c.feed, settled.c.site, settled.c.epoch, settled.c.rejected, settled.c.expired
        counted = {}
        for row in self._connection.execute(select(*columns).where(lost)):
            for outcome in ("rejected", "expired"):
                counted[LossKey(row.feed, row.site, row.epoch, outcome)] = int(row._mapping[outcome])
        return counted

    def of_feed(self, feed: str) -> list[Settled]:
        """The frontiers of one feed."""
        query = select(settled).where(settled.c.feed == feed).order_by(settled.c.site, settled.c.epoch)
        return [Settled(**row._mapping) for row in self._connection.execute(query)]

    def advance(self, *reports: Settled, at: datetime) -> None:
        """Adds the progress of sites since the last report; `at` is the time of this report."""
        rows = [asdict(report) for report in reports]
        known = {key: dict(row._mapping) for key, row in found(self._connection, settled, rows).items()}
        for row in rows:
            before = known.get(key_of(settled, row))
            got_receipt = any(row[name] for name in _COUNTED)
            row["last_receipt_at"] = at if got_receipt else None
            if before is not None:
                row |= {name: min(row[name] + before[name], most) for name, most in _COUNTED.items()}
                row["settled_to"] = max(row["settled_to"], before["settled_to"])
                row["last_receipt_at"] = row["last_receipt_at"] or before["last_receipt_at"]
            known[key_of(settled, row)] = row
        put_all(self._connection, settled, rows)


_COUNTED = {
    "stored": PRODUCTS_MAX,
    "stored_bytes": INTEGER_MAX,
    "duplicates": PRODUCTS_MAX,
    "rejected": PRODUCTS_MAX,
    "expired": PRODUCTS_MAX,
    "late_at_hub": PRODUCTS_MAX,
    "late_at_site": PRODUCTS_MAX,
}
"""The counters and their maxima: a site's products are summed over its feeds."""
# More than a day of one batch a second; a batch file never waits longer than the node keeps it.
BATCHES_REMEMBERED = 200_000
