"""Test points, with the hashes of their tokens."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from downburst.domain.measurements import TestPoint
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.measurements import test_points
from downburst.ledger.tables.sites import sites


class TestPoints:
    """Test points by name."""

    __test__ = False

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[TestPoint]:
        """Every test point, by name."""
        return [_point(row) for row in self._connection.execute(select(test_points).order_by(test_points.c.name))]

    def one(self, name: str) -> TestPoint:
        """The test point; refuses an unknown name."""
        row = self._connection.execute(select(test_points).where(test_points.c.name == name)).one_or_none()
        if row is None:
            raise NotFound(f"there is no test point {name!r}; `downburst measurements points list` shows all")
        return _point(row)

    def with_token(self, token_hash: str) -> TestPoint | None:
        """The test point with this token, if there is one."""
        query = select(test_points).where(test_points.c.token_hash == token_hash)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _point(row)

    def add(self, wanted: TestPoint, token_hash: str) -> TestPoint:
        """Adds a test point; refuses a taken name, an unknown site, and an address of another test point."""
        self._check(wanted)
        limits.TEST_POINTS.check(self._connection, test_points, holder="this hub")
        kept = replace(wanted, created_at=self._clock.now())
        row = {"name": kept.name, "addresses": list(kept.addresses), "site": kept.site, "created_at": kept.created_at}
        self._connection.execute(insert(test_points).values(row | {"token_hash": token_hash}))
        self._audit.record(KIND, kept.name, "added", after=kept)
        return kept

    def remove(self, name: str) -> None:
        """Removes a test point with its measurements; its token is no longer taken."""
        before = self.one(name)
        self._connection.execute(delete(test_points).where(test_points.c.name == name))
        self._audit.record(KIND, name, "removed", before=before)

    def _check(self, wanted: TestPoint) -> None:
        for other in self.all():
            if other.name == wanted.name:
                raise AlreadyThere(
                    f"there is a test point {wanted.name!r} already; remove it first, or choose a name"
                )
            if shared := set(other.addresses) & set(wanted.addresses):
                raise AlreadyThere(f"the address {min(shared)} is of the test point {other.name!r} already")
        known = select(sites.c.name).where(sites.c.name == wanted.site)
        if wanted.site is not None and self._connection.scalar(known) is None:
            raise NotFound(f"there is no site {wanted.site!r}; `downburst sites list` shows all")


def _point(row: Row[Any]) -> TestPoint:
    return TestPoint(row.name, tuple(row.addresses), row.site, row.created_at)


KIND = "test point"
