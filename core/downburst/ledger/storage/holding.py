"""One hub writes a ledger: of two hubs with access to a PostgreSQL, one holds it, and the other's writes fail.

There are two mechanisms. An advisory lock, which lasts as long as the connection that took it, shows whether another
hub is alive. A row of `holders`, incremented by every write of a hub, fences off a hub that was believed dead. After
a connection broke in a commit, the row shows whether that commit took place. On SQLite the data directory's lock is
enough.
"""

import secrets
import socket
from contextlib import suppress
from datetime import datetime

from sqlalchemy import Connection, Engine, delete, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from downburst.foundation.errors import AlreadyRunning
from downburst.ledger.storage.databases import shown
from downburst.ledger.tables.processes import holders


class Hold:
    """This process's hold on a ledger, for one role."""

    def __init__(self, engine: Engine, role: str, now: datetime) -> None:
        self._engine = engine
        self._role = role
        self._token = secrets.token_hex(16)
        self._writes = 0
        self._lock: Connection | None = None
        self._take(now)

    def count(self, connection: Connection) -> int:
        """Counts one write transaction, in it; refuses if another process took over. Returns its number."""
        mine = (holders.c.role == self._role) & (holders.c.token == self._token)
        number = self._writes + 1
        if connection.execute(update(holders).where(mine).values(writes=number)).rowcount != 1:
            raise AlreadyRunning(self._taken_by(connection))
        return number

    def written(self, number: int) -> None:
        """Records that the write of this number was committed."""
        self._writes = number

    def was_written(self, connection: Connection, number: int) -> bool:
        """True if the write of this number was committed; for a commit without an answer."""
        # Locked: a server that has not noticed the broken connection yet may still be about to commit.
        mine = select(holders.c.token, holders.c.writes).where(holders.c.role == self._role)
        query = mine.with_for_update()
        row = connection.execute(query).one_or_none()
        if row is None or row.token != self._token:
            raise AlreadyRunning(self._taken_by(connection))
        return bool(row.writes >= number)

    def renew(self, now: datetime) -> None:
        """Takes the lock again if its connection broke; refuses if another process was faster."""
        if self._lock is not None:
            try:
                self._lock.execute(text("SELECT 1"))
                self._lock.rollback()
            except DBAPIError:
                self._drop()
            else:
                return
        self._take_lock()
        with self._engine.begin() as connection:
            self.count(connection)
            connection.execute(update(holders).where(holders.c.role == self._role).values(at=now))
        self._writes += 1

    def release(self) -> None:
        """Releases the ledger for others."""
        with suppress(DBAPIError), self._engine.begin() as connection:
            mine = (holders.c.role == self._role) & (holders.c.token == self._token)
            connection.execute(delete(holders).where(mine))
        self._drop()

    def _take(self, now: datetime) -> None:
        self._take_lock()
        row = {"role": self._role, "token": self._token, "writes": 0, "host": socket.gethostname(), "at": now}
        with self._engine.begin() as connection:
            connection.execute(delete(holders).where(holders.c.role == self._role))
            connection.execute(insert(holders).values(row))

    def _take_lock(self) -> None:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            self._lock_on(connection)
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        self._lock = connection

    def _lock_on(self, connection: Connection) -> None:
        query = text("SELECT pg_try_advisory_lock(:space, hashtext(:role))")
        if not connection.scalar(query, {"space": HOLD_SPACE, "role": self._role}):
            raise AlreadyRunning(self._taken_by(connection))

    def _taken_by(self, connection: Connection) -> str:
        query = select(holders.c.host, holders.c.at).where(holders.c.role == self._role)
        row = connection.execute(query).one_or_none()
        who = f"on {row.host}, since {row.at:%Y-%m-%d %H:%M} UTC" if row is not None else "somewhere"
        return (
            f"another {self._role} ({who}) holds the ledger {shown(self._engine.url)}; stop it first, or give this "
            "one a database of its own"
        )

    def _drop(self) -> None:
        if self._lock is not None:
            with suppress(DBAPIError):
                # Not returned to the pool: the server releases the lock with the session.
                self._lock.invalidate()
                self._lock.close()
            self._lock = None


HOLD_SPACE = 7_370
