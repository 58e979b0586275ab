"""The exchanges of sites with their siblings, and the account of what the hub did not have to send."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, select

from downburst.domain.relays.siblings import Saved, SiblingExchange
from downburst.foundation.clock import Clock
from downburst.foundation.errors import BadInput
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage.rows import found, put, put_all
from downburst.ledger.tables.feeds import feeds
from downburst.ledger.tables.relays import relays, sibling_exchanges, sibling_savings
from downburst.ledger.tables.sites import sites


class Siblings:
    """Exchanges by site, and savings by site and feed."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[SiblingExchange]:
        """The exchange of each site that takes part, by site."""
        query = select(sibling_exchanges).order_by(sibling_exchanges.c.site)
        return [_exchange(row) for row in self._connection.execute(query)]

    def find(self, site: str) -> SiblingExchange | None:
        """The exchange of a site, if it takes part."""
        query = select(sibling_exchanges).where(sibling_exchanges.c.site == site)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _exchange(row)

    def put(self, wanted: SiblingExchange) -> SiblingExchange:
        """Switches the exchange of a site on, or changes it; refuses a relay, which holds no products."""
        if self._connection.scalar(select(relays.c.name).where(relays.c.name == wanted.site)) is not None:
            raise BadInput(f"{wanted.site!r} is a relay, which holds no products to give to siblings")
        before = self.find(wanted.site)
        kept = replace(wanted, set_at=self._clock.now())
        put(self._connection, sibling_exchanges, asdict(kept))
        self._audit.record(KIND, wanted.site, "changed" if before else "added", before=before, after=kept)
        return kept

    def remove(self, site: str) -> None:
        """Switches the exchange of a site off; its savings stay."""
        before = self.find(site)
        if before is not None:
            self._connection.execute(delete(sibling_exchanges).where(sibling_exchanges.c.site == site))
            self._audit.record(KIND, site, "removed", before=before)

    def savings(self, site: str | None = None) -> list[Saved]:
        """The account of a site, or of all, by site and feed."""
        query = select(sibling_savings).order_by(sibling_savings.c.site, sibling_savings.c.feed)
        if site is not None:
            query = query.where(sibling_savings.c.site == site)
        return [Saved(**row._mapping) for row in self._connection.execute(query)]

    def count(self, saved: Iterable[Saved]) -> None:
        """Adds to the account; what names a site or feed that is gone is passed over."""
        known_sites = set(self._connection.scalars(select(sites.c.name)))
        known_feeds = set(self._connection.scalars(select(feeds.c.name)))
        rows = [asdict(one) for one in saved if one.site in known_sites and one.feed in known_feeds]
        held = found(self._connection, sibling_savings, rows)
        for row in rows:
            before = held.get((row["site"], row["feed"]))
            if before is not None:
                row["products"] += before.products
                row["bytes"] += before.bytes
        put_all(self._connection, sibling_savings, rows)


def _exchange(row: Row[Any]) -> SiblingExchange:
    return SiblingExchange(**row._mapping)


KIND = "siblings of site"
