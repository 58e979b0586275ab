"""Products that publishers of WIS2 announce."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update

from downburst.domain.bridges.publishers import RECORD, Outgoing, Step
from downburst.foundation.clock import Clock
from downburst.ledger.storage import rows
from downburst.ledger.tables.bridges import wis2_outgoing


class Outbox:
    """Products that are announced, or were, by publisher and notification."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def put(self, outgoing: Iterable[Outgoing]) -> None:
        """Stores products that are to be announced, or are refused."""
        rows.put_all(self._connection, wis2_outgoing, [_row(one) for one in outgoing])

    def waiting(self, publisher: str, limit: int = 100) -> list[Outgoing]:
        """Those that the broker has not acknowledged, the oldest first."""
        table = wis2_outgoing
        query = select(table).where(table.c.publisher == publisher, table.c.step == Step.WAITING.value)
        query = query.order_by(table.c.made_at, table.c.sequence, table.c.id).limit(limit)
        return [_outgoing(row) for row in self._connection.execute(query)]

    def latest(self, publisher: str, data_ids: Iterable[str]) -> dict[str, Outgoing]:
        """The last one of each of these data ids that was not refused."""
        table, found = wis2_outgoing, dict[str, Outgoing]()
        wanted = sorted(set(data_ids))
        for first in range(0, len(wanted), AT_ONCE):
            some = wanted[first : first + AT_ONCE]
            query = select(table).where(table.c.publisher == publisher, table.c.data_id.in_(some))
            query = query.where(table.c.step != Step.REFUSED.value).order_by(table.c.made_at, table.c.sequence)
            found |= {row.data_id: _outgoing(row) for row in self._connection.execute(query)}
        return found

    def of_product(self, publisher: str, epoch: str, sequence: int) -> Outgoing | None:
        """The announcement of a product, or its withdrawal, for those who ask for its bytes."""
        table = wis2_outgoing
        where = (table.c.publisher == publisher, table.c.epoch == epoch, table.c.sequence == sequence)
        found = self._connection.execute(select(table).where(*where, table.c.step != Step.REFUSED.value))
        all_of_it = sorted(map(_outgoing, found), key=lambda one: one.kind == "deletion", reverse=True)
        return next(iter(all_of_it), None)

    def about_product(self, publishers: Iterable[str], epoch: str, sequence: int) -> list[Outgoing]:
        """All that these publishers did with a product, the oldest first."""
        table = wis2_outgoing
        where = (table.c.publisher.in_(list(publishers)), table.c.epoch == epoch, table.c.sequence == sequence)
        query = select(table).where(*where).order_by(table.c.made_at, table.c.publisher).limit(AT_ONCE)
        return [_outgoing(row) for row in self._connection.execute(query)]

    def latest_record(self, publisher: str) -> Outgoing | None:
        """The last announcement of a dataset's record."""
        table = wis2_outgoing
        query = select(table).where(table.c.publisher == publisher, table.c.epoch == RECORD)
        row = self._connection.execute(query.order_by(table.c.made_at.desc()).limit(1)).one_or_none()
        return None if row is None else _outgoing(row)

    def settle(self, outgoing: Outgoing, step: Step, reason: str = "") -> None:
        """Records the next step of a notification."""
        table = wis2_outgoing
        announced_at = self._clock.now() if step is Step.ANNOUNCED else None
        values = {"step": step.value, "reason": reason, "announced_at": announced_at}
        where = (table.c.publisher == outgoing.publisher, table.c.id == outgoing.id)
        self._connection.execute(update(table).where(*where).values(values))

    def expire(self, made_before: datetime, reason: str) -> int:
        """Gives up those that have waited since before this instant; returns their number."""
        table = wis2_outgoing
        where = (table.c.step == Step.WAITING.value, table.c.made_at < made_before)
        values = {"step": Step.EXPIRED.value, "reason": reason}
        return self._connection.execute(update(table).where(*where).values(values)).rowcount

    def newest(self, publisher: str, step: Step | None = None, limit: int = 100) -> list[Outgoing]:
        """The last ones, the newest first."""
        table = wis2_outgoing
        query = select(table).where(table.c.publisher == publisher)
        query = query if step is None else query.where(table.c.step == step.value)
        query = query.order_by(table.c.made_at.desc(), table.c.sequence.desc(), table.c.id).limit(limit)
        return [_outgoing(row) for row in self._connection.execute(query)]

    def count(self, publisher: str) -> Mapping[Step, int]:
        """The number of notifications by step."""
        table = wis2_outgoing
        query = select(table.c.step, func.count()).where(table.c.publisher == publisher).group_by(table.c.step)
        return {Step(step): count for step, count in self._connection.execute(query)}

    def forget_before(self, instant: datetime) -> None:
        """Deletes those that were made before this instant, and are served no more."""
        self._connection.execute(delete(wis2_outgoing).where(wis2_outgoing.c.made_at < instant))


def _row(outgoing: Outgoing) -> dict[str, Any]:
    return asdict(outgoing) | {"step": outgoing.step.value}


def _outgoing(row: Row[Any]) -> Outgoing:
    values = dict(row._mapping)
    return Outgoing(**values | {"step": Step(values["step"])})


AT_ONCE = 500
"""Data ids in a query; SQLite takes 32,766 values at most."""
