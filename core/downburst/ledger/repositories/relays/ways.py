"""The ways of sites, as the scheduler chose them."""

from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, select

from downburst.domain.relays.ways import CoreCircuit, SiteWay
from downburst.foundation.clock import Clock
from downburst.ledger.storage.rows import put
from downburst.ledger.tables.relays import site_ways
from downburst.ledger.tables.sites import sites


class Ways:
    """Ways by site; only the scheduler writes them."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def all(self) -> list[SiteWay]:
        """Every way that was ever chosen, by site."""
        return [_way(row) for row in self._connection.execute(select(site_ways).order_by(site_ways.c.site))]

    def find(self, site: str) -> SiteWay | None:
        """The site's way, if one was chosen."""
        row = self._connection.execute(select(site_ways).where(site_ways.c.site == site)).one_or_none()
        return None if row is None else _way(row)

    def put(self, way: SiteWay) -> SiteWay:
        """Stores a way, with the present time unless it has one; of a site that is gone it is no news."""
        kept = way if way.decided_at is not None else replace(way, decided_at=self._clock.now())
        if self._connection.scalar(select(sites.c.name).where(sites.c.name == way.site)) is not None:
            put(self._connection, site_ways, asdict(kept) | {"chain": list(kept.chain)})
        return kept

    def remove(self, site: str) -> None:
        """Forgets the way of a site: the node no longer tells it one."""
        self._connection.execute(delete(site_ways).where(site_ways.c.site == site))


def _way(row: Row[Any]) -> SiteWay:
    values = dict(row._mapping)
    over = values.pop("over")
    return SiteWay(**values | {"chain": tuple(values["chain"]), "over": CoreCircuit(**over) if over else None})
