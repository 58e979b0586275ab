"""LDMs from which products are requested, and hosts that may push."""

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from downburst.domain.upstreams import LdmAccept, LdmSource
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.upstreams import ldm_accepts, ldm_sources


class LdmSources:
    """Sources by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[LdmSource]:
        """Every source, by name."""
        query = select(ldm_sources).order_by(ldm_sources.c.name)
        return [_source(row) for row in self._connection.execute(query)]

    def find(self, name: str) -> LdmSource | None:
        """The source, if there is one."""
        row = self._connection.execute(select(ldm_sources).where(ldm_sources.c.name == name)).one_or_none()
        return None if row is None else _source(row)

    def one(self, name: str) -> LdmSource:
        """The source; refuses an unknown name."""
        found = self.find(name)
        if found is None:
            raise NotFound(f"there is no LDM source {name!r}; `downburst ldm sources` shows all")
        return found

    def add(self, source: LdmSource) -> LdmSource:
        """Adds a source; refuses a name that is taken."""
        if self.find(source.name) is not None:
            raise AlreadyThere(f"LDM source {source.name!r} already exists; remove it first, or choose another name")
        limits.LDM_SOURCES.check(self._connection, ldm_sources, holder="this hub")
        self._connection.execute(insert(ldm_sources).values(_row(source) | {"created_at": self._clock.now()}))
        kept = self.one(source.name)
        self._audit.record("LDM source", source.name, "added", after=kept)
        return kept

    def change(self, source: LdmSource) -> LdmSource:
        """Updates a source."""
        before = self.one(source.name)
        change = update(ldm_sources).where(ldm_sources.c.name == source.name)
        self._connection.execute(change.values(_row(source) | {"created_at": before.created_at}))
        kept = self.one(source.name)
        self._audit.record("LDM source", source.name, "changed", before=before, after=kept)
        return kept

    def remove(self, name: str) -> None:
        """Removes a source; its products stay."""
        before = self.one(name)
        self._connection.execute(delete(ldm_sources).where(ldm_sources.c.name == name))
        self._audit.record("LDM source", name, "removed", before=before)


class LdmAccepts:
    """Permissions to push, by feeds, pattern and host."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[LdmAccept]:
        """Every line, oldest first."""
        query = select(ldm_accepts).order_by(ldm_accepts.c.id)
        return [LdmAccept(**row._mapping) for row in self._connection.execute(query)]

    def add(self, line: LdmAccept) -> LdmAccept:
        """Adds a line under a new number; its own id is ignored."""
        limits.LDM_ACCEPTS.check(self._connection, ldm_accepts, holder="this hub")
        row = asdict(line) | {"created_at": self._clock.now()}
        del row["id"]
        key = self._connection.execute(insert(ldm_accepts).values(row)).inserted_primary_key
        query = select(ldm_accepts).where(ldm_accepts.c.id == (key[0] if key else None))
        kept = LdmAccept(**self._connection.execute(query).one()._mapping)
        self._audit.record("LDM accept", kept.id, "added", after=kept)
        return kept

    def remove(self, number: int) -> None:
        """Removes a line."""
        before = next((line for line in self.all() if line.id == number), None)
        if before is None:
            raise NotFound(f"nothing is accepted under the number {number}; `downburst ldm accepts` shows all")
        self._connection.execute(delete(ldm_accepts).where(ldm_accepts.c.id == number))
        self._audit.record("LDM accept", number, "removed", before=before)


def _row(source: LdmSource) -> dict[str, Any]:
    return asdict(source) | {"upstreams": list(source.upstreams)}


def _source(row: Row[Any]) -> LdmSource:
    values = dict(row._mapping)
    return LdmSource(**values | {"upstreams": tuple(values["upstreams"])})
