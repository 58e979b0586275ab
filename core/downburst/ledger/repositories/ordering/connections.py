"""The hub as an NSI provider: connections of requesters, their correlation ids, and the replies to them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, Failure
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.storage.rows import put
from downburst.ledger.tables.nsi import nsi_connections, nsi_correlations, nsi_replies

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A reply or notification."""

    number: int
    connection_id: str
    is_notice: bool
    reply_to: str | None
    """The address that still has to get it; None: it got it, or asks for it."""
    tries: int
    at: datetime
    record: Record


class Connections:
    """Connections by their ids, as `downburst_circuits.provider_agent` writes them."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Record]:
        """Every connection, in the order of their ids."""
        query = select(nsi_connections.c.record).order_by(nsi_connections.c.connection_id)
        return [dict(record) for record in self._connection.scalars(query)]

    def add(self, connection_id: str, subject: str, record: Record) -> None:
        """Stores a new connection; refuses one more at a limit."""
        is_open = nsi_connections.c.ended_at.is_(None)
        of_subject = nsi_connections.c.subject == subject
        limits.NSI_CONNECTIONS.check(self._connection, nsi_connections, is_open, holder="this hub")
        limits.NSI_CONNECTIONS_OF_SUBJECT.check(
            self._connection, nsi_connections, is_open, of_subject, holder=subject
        )
        row = {"connection_id": connection_id, "subject": subject, "ended_at": None, "record": record}
        self._connection.execute(insert(nsi_connections).values(row))
        self._audit.record(KIND, connection_id, "reserved", after={"subject": subject})

    def save(self, connection_id: str, record: Record) -> None:
        """Stores the present state of a connection that has not ended."""
        changed = update(nsi_connections).where(nsi_connections.c.connection_id == connection_id)
        self._connection.execute(changed.values(record=record))

    def end(self, connection_id: str, subject: str, record: Record) -> None:
        """Stores the last state of a connection; the oldest ended ones of its subject are removed."""
        row = {"connection_id": connection_id, "subject": subject, "record": record, "ended_at": self._clock.now()}
        put(self._connection, nsi_connections, row)
        self._audit.record(KIND, connection_id, "ended")
        limits.NSI_ENDED.trim(
            self._connection,
            nsi_connections,
            nsi_connections.c.subject == subject,
            nsi_connections.c.ended_at.is_not(None),
            by=nsi_connections.c.ended_at,
            holder=subject,
        )

    def seen(self, subject: str, correlation_id: str) -> None:
        """Remembers the id of a request; refuses one that the subject has used."""
        of_subject = nsi_correlations.c.subject == subject
        query = select(nsi_correlations.c.number).where(
            of_subject, nsi_correlations.c.correlation_id == correlation_id
        )
        if self._connection.scalar(query) is not None:
            raise AlreadyThere(f"the correlation id {correlation_id} was used before; give each request another one")
        limits.NSI_CORRELATIONS.make_room(
            self._connection, nsi_correlations, of_subject, by=nsi_correlations.c.number, holder=subject
        )
        row = {"subject": subject, "correlation_id": correlation_id}
        self._connection.execute(insert(nsi_correlations).values(row))

    def reply(self, connection_id: str, record: Record, *, is_notice: bool, reply_to: str | None) -> StoredReply:
        """Stores a reply or notification under a new number."""
        limits.NSI_REPLIES.make_room(
            self._connection,
            nsi_replies,
            nsi_replies.c.connection_id == connection_id,
            by=nsi_replies.c.number,
            holder=connection_id,
        )
        now = self._clock.now()
        row = {
            "connection_id": connection_id,
            "is_notice": is_notice,
            "reply_to": reply_to,
            "tries": 0,
            "at": now,
            "record": record,
        }
        key = self._connection.execute(insert(nsi_replies).values(row)).inserted_primary_key
        if key is None:
            raise Failure("the ledger gave no number to a reply; check the database")
        return StoredReply(int(key[0]), connection_id, is_notice, reply_to, 0, now, record)

    def replies(self, connection_id: str, *, are_notices: bool) -> list[StoredReply]:
        """The kept replies of a connection, or its notifications, oldest first."""
        query = select(nsi_replies).where(
            nsi_replies.c.connection_id == connection_id, nsi_replies.c.is_notice == are_notices
        )
        return [_stored(row) for row in self._connection.execute(query.order_by(nsi_replies.c.number))]

    def undelivered(self) -> list[StoredReply]:
        """What some address still has to get, oldest first."""
        query = select(nsi_replies).where(nsi_replies.c.reply_to.is_not(None)).order_by(nsi_replies.c.number)
        return [_stored(row) for row in self._connection.execute(query)]

    def tried(self, number: int, *, tries: int, done: bool) -> None:
        """Stores the attempts to deliver one; done: it was delivered, or is given up."""
        values: dict[str, Any] = {"tries": tries} | ({"reply_to": None} if done else {})
        self._connection.execute(update(nsi_replies).where(nsi_replies.c.number == number).values(values))


def _stored(row: Row[Any]) -> StoredReply:
    return StoredReply(**dict(row._mapping))


KIND = "NSI connection"
