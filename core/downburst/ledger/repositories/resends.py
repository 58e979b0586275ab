"""Jobs that send products to sites again, or late because a subscription begins in the past."""

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from downburst.domain.resends import Resend, ResendKind, ResendState
from downburst.domain.subscriptions import IdFilter
from downburst.foundation.clock import Clock
from downburst.foundation.errors import NotFound
from downburst.foundation.names import is_feed_name
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.sites import resends


class Resends:
    """Resends by number; ended ones beyond the newest thousand are removed."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def add(self, wanted: Resend) -> Resend:
        """Adds a resend under a new number; its own id is ignored."""
        waiting = resends.c.site == wanted.site, resends.c.state == ResendState.WAITING.value
        limits.RESENDS_OF_SITE.check(self._connection, resends, *waiting, holder=f"site {wanted.site!r}")
        row = _row(wanted) | {"requested_at": self._clock.now(), "state": ResendState.WAITING.value}
        key = self._connection.execute(insert(resends).values(row)).inserted_primary_key
        number = 0 if key is None else int(key[0])
        ended = resends.c.state != ResendState.WAITING.value
        self._connection.execute(delete(resends).where(ended, resends.c.id <= number - ENDED_KEPT))
        kept = self.one(number)
        self._audit.record("resend", number, "added", after=kept)
        return kept

    def one(self, number: int) -> Resend:
        """The resend; refuses an unknown number."""
        row = self._connection.execute(select(resends).where(resends.c.id == number)).one_or_none()
        if row is None:
            raise NotFound(f"there is no resend {number}; `downburst resends list` shows the newest")
        return _resend(row)

    def newest(
        self, *, site: str | None = None, feed: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[Resend]:
        """The newest resends with a number below `before`, filtered by site or feed."""
        query = select(resends).order_by(resends.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(resends.c.id < before)
        if site is not None:
            query = query.where(resends.c.site == site)
        if feed is not None:
            query = query.where(resends.c.feed == feed)
        return [_resend(row) for row in self._connection.execute(query)]

    def waiting(self) -> list[Resend]:
        """Every resend that is not finished, oldest first."""
        query = select(resends).where(resends.c.state == ResendState.WAITING.value).order_by(resends.c.id)
        return [_resend(row) for row in self._connection.execute(query) if is_feed_name(row.feed)]

    def finish(self, number: int, *, products: int, size_bytes: int, expired: int) -> bool:
        """Stores the result of a waiting resend; False if it was ended or removed before."""
        counted = {"products": products, "bytes": size_bytes, "expired": expired}
        return self._end(number, ResendState.DONE, counted)

    def cancel(self, number: int) -> Resend:
        """Ends a resend; delivered products stay."""
        before = self.one(number)
        self._end(number, ResendState.CANCELLED, {})
        kept = self.one(number)
        self._audit.record("resend", number, "cancelled", before=before, after=kept)
        return kept

    def _end(self, number: int, state: ResendState, counted: dict[str, int]) -> bool:
        waits = (resends.c.id == number, resends.c.state == ResendState.WAITING.value)
        values = {"state": state.value, "ended_at": self._clock.now(), **counted}
        return self._connection.execute(update(resends).where(*waits).values(values)).rowcount == 1


def _row(wanted: Resend) -> dict[str, Any]:
    row = asdict(wanted)
    del row["id"]
    return {**row.pop("wanted"), **row, "kind": wanted.kind.value, "had": [asdict(each) for each in wanted.had]}


def _resend(row: Row[Any]) -> Resend:
    values = dict(row._mapping)
    wanted = IdFilter(values.pop("pattern"), values.pop("not_pattern"))
    had = tuple(IdFilter(**each) for each in values.pop("had"))
    kind, state = ResendKind(values.pop("kind")), ResendState(values.pop("state"))
    return Resend(**values, kind=kind, state=state, wanted=wanted, had=had)


ENDED_KEPT = 1_000
