"""The hubs of which this hub is a site."""

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from downburst.domain.upstreams import Upstream
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.upstreams import upstreams


class Upstreams:
    """Upstreams by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Upstream]:
        """Every upstream, by name."""
        return [_upstream(row) for row in self._connection.execute(select(upstreams).order_by(upstreams.c.name))]

    def one(self, name: str) -> Upstream:
        """The upstream; refuses an unknown name."""
        row = self._connection.execute(select(upstreams).where(upstreams.c.name == name)).one_or_none()
        if row is None:
            raise NotFound(f"there is no upstream {name!r}; `downburst upstreams list` shows all")
        return _upstream(row)

    def add(self, upstream: Upstream) -> Upstream:
        """Adds an upstream; refuses a name that is taken."""
        if any(known.name == upstream.name for known in self.all()):
            raise AlreadyThere(f"upstream {upstream.name!r} already exists; remove it first, or choose another name")
        limits.UPSTREAMS.check(self._connection, upstreams, holder="this hub")
        row = asdict(upstream) | {"feeds": list(upstream.feeds), "created_at": self._clock.now()}
        self._connection.execute(insert(upstreams).values(row))
        kept = self.one(upstream.name)
        self._audit.record("upstream", upstream.name, "added", after=kept)
        return kept

    def remove(self, name: str) -> None:
        """Removes an upstream; its products stay."""
        before = self.one(name)
        self._connection.execute(delete(upstreams).where(upstreams.c.name == name))
        self._audit.record("upstream", name, "removed", before=before)


def _upstream(row: Row[Any]) -> Upstream:
    values = dict(row._mapping)
    return Upstream(**values | {"feeds": tuple(values["feeds"])})
