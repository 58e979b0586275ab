"""Sources of WIS2."""

from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from downburst.domain.bridges import Broker, OriginLogin, Wis2Source
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.bridges import wis2_sources
from downburst.ledger.tables.feeds import feeds


class Wis2Sources:
    """Sources by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Wis2Source]:
        """Every source, by name."""
        query = select(wis2_sources).order_by(wis2_sources.c.name)
        return [_source(row) for row in self._connection.execute(query)]

    def one(self, name: str) -> Wis2Source:
        """The source; refuses an unknown name."""
        row = self._connection.execute(select(wis2_sources).where(wis2_sources.c.name == name)).one_or_none()
        if row is None:
            raise NotFound(f"there is no source {name!r}; `downburst bridges list` shows all")
        return _source(row)

    def add(self, wanted: Wis2Source) -> Wis2Source:
        """Adds a source; refuses a taken name and an unknown feed."""
        if any(known.name == wanted.name for known in self.all()):
            raise AlreadyThere(f"there is a source {wanted.name!r} already; remove it first, or choose another name")
        self._check_feed(wanted)
        limits.WIS2_SOURCES.check(self._connection, wis2_sources, holder="this hub")
        kept = replace(wanted, created_at=self._clock.now())
        self._connection.execute(insert(wis2_sources).values(_row(kept)))
        self._audit.record(KIND, kept.name, "added", after=kept)
        return kept

    def change(self, wanted: Wis2Source) -> Wis2Source:
        """Replaces a source, but not the time at which it was added."""
        before = self.one(wanted.name)
        self._check_feed(wanted)
        kept = wanted.in_place_of(before)
        same = wis2_sources.c.name == kept.name
        self._connection.execute(update(wis2_sources).where(same).values(_row(kept)))
        self._audit.record(KIND, kept.name, "changed", before=before, after=kept)
        return kept

    def remove(self, name: str) -> None:
        """Removes a source with its notifications; its products stay."""
        before = self.one(name)
        self._connection.execute(delete(wis2_sources).where(wis2_sources.c.name == name))
        self._audit.record(KIND, name, "removed", before=before)

    def _check_feed(self, wanted: Wis2Source) -> None:
        if self._connection.scalar(select(feeds.c.name).where(feeds.c.name == wanted.feed)) is None:
            raise NotFound(f"there is no feed {wanted.feed!r}; `downburst feeds list` shows all")


def _row(source: Wis2Source) -> dict[str, Any]:
    lists: dict[str, Any] = {"filters": list(source.filters), "former_filters": list(source.former_filters)}
    lists |= {"logins": [asdict(one) for one in source.logins]}
    return asdict(source) | lists | {"brokers": [asdict(one) for one in source.brokers]}


def _source(row: Row[Any]) -> Wis2Source:
    values = dict(row._mapping)
    brokers = tuple(Broker(**one) for one in values["brokers"])
    lists = {name: tuple(values[name]) for name in ("filters", "former_filters")}
    logins = tuple(OriginLogin(**one) for one in values["logins"])
    return Wis2Source(**values | lists | {"brokers": brokers, "logins": logins})


KIND = "bridge"
