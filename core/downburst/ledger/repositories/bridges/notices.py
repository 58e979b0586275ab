"""Notifications of sources: of each data id the last one that was taken, and the accounts of centres."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, delete, func, insert, select, update

from downburst.domain.bridges import CentreDay, Ended, Last, Notice, State, Unsettled
from downburst.foundation.clock import Clock
from downburst.ledger.storage import rows
from downburst.ledger.tables.bridges import wis2_days, wis2_notices, wis2_sources


class Notices:
    """Notifications, by source and data id."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def last(self, source: str, data_ids: Iterable[str]) -> dict[str, Last]:
        """The last notification of each of these data ids that the source took."""
        table, found = wis2_notices, dict[str, Last]()
        columns = [table.c[name] for name in ("id", "data_id", "digest", "published_at", "state")]
        wanted = sorted(set(data_ids))
        for first in range(0, len(wanted), AT_ONCE):
            some = wanted[first : first + AT_ONCE]
            query = select(*columns).where(table.c.source == source, table.c.data_id.in_(some))
            found |= {row.data_id: _last(row) for row in self._connection.execute(query)}
        return found

    def take(self, notices: Iterable[Notice]) -> None:
        """Stores notifications in place of earlier ones of their data ids."""
        rows.put_all(self._connection, wis2_notices, [_row(notice) for notice in notices])

    def coming(self, source: str, limit: int = 1_000, *, centre: str | None = None) -> list[Notice]:
        """Those whose products are still to be fetched, the oldest first; `centre`: of this one alone."""
        table = wis2_notices
        query = select(table).where(table.c.source == source, table.c.state == State.COMING.value)
        if centre is not None:
            query = query.where(table.c.centre == centre)
        query = query.order_by(table.c.received_at, table.c.data_id).limit(limit)
        return [_notice(row) for row in self._connection.execute(query)]

    def oldest_coming(self, source: str) -> datetime | None:
        """The receipt of the oldest one whose product is still to be fetched; None: there is none."""
        table = wis2_notices
        where = (table.c.source == source, table.c.state == State.COMING.value)
        oldest: datetime | None = self._connection.scalar(select(func.min(table.c.received_at)).where(*where))
        return oldest

    def waiting(self, source: str, centre: str, limit: int = 10_000) -> list[Notice]:
        """Those for which this centre had no bytes left, the longest waiting first."""
        table = wis2_notices
        where = (table.c.source == source, table.c.centre == centre, table.c.state == State.WAITING.value)
        query = select(table).where(*where)
        query = query.order_by(table.c.received_at, table.c.data_id).limit(limit)
        return [_notice(row) for row in self._connection.execute(query)]

    def unsettled(self, source: str) -> list[Unsettled]:
        """The products of each centre that come or wait, by centre."""
        table = wis2_notices
        waits, comes = (table.c.state == state.value for state in (State.WAITING, State.COMING))
        figures = (
            func.sum(case((comes, 1), else_=0)).label("coming"),
            func.sum(case((waits, 1), else_=0)).label("waiting"),
            func.sum(case((waits, table.c.announced_bytes), else_=0)).label("waiting_bytes"),
        )
        query = select(table.c.centre, *figures).where(table.c.source == source, waits | comes)
        query = query.group_by(table.c.centre).order_by(table.c.centre)
        found = self._connection.execute(query)
        return [Unsettled(centre, int(coming), int(waiting), int(size)) for centre, coming, waiting, size in found]

    def known_to(self, source: str) -> datetime | None:
        """The time at which the newest notification came; None: none has yet."""
        table = wis2_notices
        newest: datetime | None = self._connection.scalar(
            select(func.max(table.c.received_at)).where(table.c.source == source)
        )
        return newest

    def failed(self, source: str, limit: int = 10_000) -> list[Notice]:
        """Those that nothing is tried for any more, the newest first."""
        table = wis2_notices
        query = select(table).where(table.c.source == source, table.c.state == State.FAILED.value)
        query = query.order_by(table.c.settled_at.desc(), table.c.data_id).limit(limit)
        return [_notice(row) for row in self._connection.execute(query)]

    def of_product(self, feed: str, data_id: str, sequence: int) -> Notice | None:
        """The one by which a product came into a feed; None once a later one of its data id is there."""
        table, sources = wis2_notices, wis2_sources
        query = select(table).join(sources, sources.c.name == table.c.source)
        query = query.where(sources.c.feed == feed, table.c.data_id == data_id, table.c.sequence == sequence)
        row = self._connection.execute(query.order_by(table.c.received_at).limit(1)).one_or_none()
        return None if row is None else _notice(row)

    def settle(self, source: str, ended: Sequence[Ended]) -> list[Ended]:
        """Records the ends of notifications; returns those in whose place no later one of their data id has come."""
        table = wis2_notices
        last = self.last(source, (one.notice.data_id for one in ended))
        kept = [one for one in ended if _is(last.get(one.notice.data_id), one.notice)]
        if kept:
            where = (table.c.source == source, table.c.data_id == bindparam("of_data_id"))
            now = self._clock.now()
            self._connection.execute(update(table).where(*where), [_settled(one, now) for one in kept])
        return kept

    def release(self, notice: Notice) -> None:
        """Has the product of one that waited fetched."""
        table = wis2_notices
        where = (table.c.source == notice.source, table.c.data_id == notice.data_id)
        self._connection.execute(update(table).where(*where).values(state=State.COMING))

    def give_up_waiting(self, received_before: datetime, reason: str) -> int:
        """Counts those as failed that have waited since before this instant; returns their number."""
        table = wis2_notices
        where = (table.c.state == State.WAITING.value, table.c.received_at < received_before)
        values = {"state": State.FAILED, "reason": reason, "settled_at": self._clock.now()}
        return self._connection.execute(update(table).where(*where).values(values)).rowcount

    def again(self, source: str) -> int:
        """Has failed ones tried once more; returns their number."""
        table = wis2_notices
        where = (table.c.source == source, table.c.state == State.FAILED.value)
        values = {"state": State.COMING, "reason": "", "settled_at": None}
        return self._connection.execute(update(table).where(*where).values(values)).rowcount

    def forget_before(self, instant: datetime) -> None:
        """Deletes what was settled before this instant."""
        self._connection.execute(delete(wis2_notices).where(wis2_notices.c.settled_at < instant))

    def count(self, source: str) -> Mapping[State, int]:
        """The number of notifications by state."""
        table = wis2_notices
        query = select(table.c.state, func.count()).where(table.c.source == source).group_by(table.c.state)
        return {State(state): count for state, count in self._connection.execute(query)}


class CentreDays:
    """The accounts of centres."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, source: str, day: date) -> list[CentreDay]:
        """Those of a day, by centre."""
        table = wis2_days
        query = select(table).where(table.c.source == source, table.c.day == day).order_by(table.c.centre)
        return [CentreDay(**row._mapping) for row in self._connection.execute(query)]

    def add(self, more: Iterable[CentreDay]) -> None:
        """Adds to accounts, which begin with the first entry."""
        table = wis2_days
        for one in more:
            same = (table.c.source == one.source, table.c.centre == one.centre, table.c.day == one.day)
            counts = {name: getattr(one, name) for name in COUNTS}
            raised = {name: table.c[name] + count for name, count in counts.items()}
            if self._connection.execute(update(table).where(*same).values(raised)).rowcount == 0:
                key = {"source": one.source, "centre": one.centre, "day": one.day}
                self._connection.execute(insert(table).values(key | counts))

    def forget_before(self, day: date) -> None:
        """Deletes the accounts of earlier days."""
        self._connection.execute(delete(wis2_days).where(wis2_days.c.day < day))


def _row(notice: Notice) -> dict[str, Any]:
    return {
        "source": notice.source,
        "data_id": notice.data_id,
        "id": notice.last.id,
        "digest": notice.last.identity[1],
        "published_at": notice.last.published_at,
        "state": notice.last.state.value,
        "topic": notice.topic,
        "centre": notice.centre,
        "announced_bytes": notice.announced_bytes,
        "payload": notice.payload,
        "received_at": notice.received_at,
        "attempts": notice.attempts,
        "reason": notice.reason,
        "sequence": notice.sequence,
        "settled_at": notice.settled_at,
    }


def _is(last: Last | None, notice: Notice) -> bool:
    return last is not None and last.id == notice.last.id


def _settled(ended: Ended, now: datetime) -> dict[str, Any]:
    return {
        "of_data_id": ended.notice.data_id,
        "state": ended.state.value,
        "reason": ended.reason,
        "sequence": ended.sequence,
        "settled_at": now,
    }


def _last(row: Row[Any]) -> Last:
    return Last(row.id, (row.data_id, row.digest), row.published_at, State(row.state))


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        row.source, row.data_id, _last(row), row.topic, row.payload, row.received_at, row.centre,
        row.announced_bytes, row.attempts, row.reason, row.sequence, row.settled_at,
    )  # fmt: skip


COUNTS = ("products", "bytes", "copies", "refused", "failed")
AT_ONCE = 500
"""Data ids in a query; SQLite takes 32,766 values at most."""
