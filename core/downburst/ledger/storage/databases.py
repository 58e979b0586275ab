"""The two kinds of databases for a ledger: how to connect to each, and the meaning of its errors to a user."""

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from downburst.foundation.errors import BadInput, DiskFull, Failure, LedgerAway, NotWritable
from downburst.ledger.storage.soundness import break_seal, damaged

if TYPE_CHECKING:
    from psycopg import Connection as Psycopg


def connect(url: str) -> Engine:
    """Connects to the database, with any schema."""
    parsed = parse(url)
    if parsed.get_backend_name() == "postgresql":
        engine = create_engine(
            parsed, pool_size=CONNECTIONS, max_overflow=2, connect_args=_patient(parsed), hide_parameters=True
        )
        event.listen(engine, "connect", _prepare_postgresql)
        return engine
    if parsed.database:
        break_seal(Path(parsed.database))
    # Values are hidden from logs and errors: keys of webhooks are among them.
    engine = create_engine(
        parsed, pool_size=CONNECTIONS, connect_args={"timeout": BUSY_TIMEOUT_S}, hide_parameters=True
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def connect_to_read(url: str) -> Engine:
    """Connects to the database for reading only: creates no database and no file."""
    parsed = parse(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return connect(url)
    parsed = parsed.set(database=f"file:{quote(parsed.database)}", query={"mode": "ro", "uri": "true"})
    return create_engine(parsed, pool_size=CONNECTIONS, connect_args={"timeout": BUSY_TIMEOUT_S})


def parse(url: str) -> URL:
    """The URL with its driver; refuses anything but SQLite and PostgreSQL."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise BadInput(f"the ledger's URL can't be read; {WRITE_IT_SO}") from None
    kind = parsed.drivername.partition("+")[0]
    if kind in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise BadInput(f"the ledger can't be in {kind!r}; {WRITE_IT_SO}")
    return parsed


def file_of(url: str) -> Path | None:
    """The file of an SQLite ledger; None for others."""
    parsed = parse(url)
    return Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None


def hold_journal_room(url: str) -> None:
    """Allocates the space of SQLite's write-ahead log ahead of its use, if there is plenty.

    Changes that free space can then be written on a disk that is full to the last byte. SQLite reads the log up to
    the first record without a valid checksum, so it passes over the empty rest.
    """
    file = file_of(url)
    if file is None:
        return
    with suppress(OSError), Path(f"{file}-wal").open("r+b") as journal:
        held = os.fstat(journal.fileno()).st_size >= JOURNAL_ROOM_BYTES
        if not held and shutil.disk_usage(file.parent).free >= PLENTY * JOURNAL_ROOM_BYTES:
            os.posix_fallocate(journal.fileno(), 0, JOURNAL_ROOM_BYTES)


def speaks_postgresql(connection: Connection) -> bool:
    """True for PostgreSQL."""
    return connection.dialect.name == "postgresql"


def options(connection: Connection, *, writes: bool) -> Connection:
    """Sets the connection's options for a transaction: a reader sees one snapshot, as it does on SQLite."""
    if speaks_postgresql(connection):
        level = "READ COMMITTED" if writes else "REPEATABLE READ"
        return connection.execution_options(isolation_level=level, postgresql_readonly=not writes)
    return connection.execution_options(downburst_writes=writes)


def is_lost(error: DBAPIError) -> bool:
    """True if the connection failed, or none could be made, so that the work itself is not at fault."""
    if getattr(error.orig, "sqlstate", None) in _NOT_NOW:
        return True
    if error.connection_invalidated:
        return True
    # An error before any statement is a failure to connect.
    return (
        isinstance(error, OperationalError) and error.statement is None and not isinstance(error.orig, sqlite3.Error)
    )


def is_of_server(error: DBAPIError) -> bool:
    """True if the database itself fails, rather than a row that does not fit."""
    if _is_damage(error):
        return True
    return isinstance(error, OperationalError | InterfaceError) or getattr(error.orig, "sqlstate", None) == _NO_RIGHT


def explained(error: DBAPIError, url: URL | str) -> Failure:
    """One sentence about an unusable database."""
    reason, where = str(error.orig), f"the ledger {shown(url)}"
    if isinstance(error.orig, sqlite3.Error):
        return damaged(where, reason) if _is_damage(error) else _explained_sqlite(reason, where)
    state = getattr(error.orig, "sqlstate", None)
    if state == _DISK_FULL:
        return DiskFull("the disk of the ledger's database server is full; free some space there and try again")
    if state == _NO_RIGHT:
        return NotWritable(
            f"{where}: its role lacks a right ({_first_line(reason)}); let it own its database, or "
            "GRANT CREATE, USAGE ON SCHEMA public to it"
        )
    if state == _READ_ONLY:
        return NotWritable(f"{where} is on a read-only server (a standby); name the primary")
    for part, sentence in _MEANINGS:
        if part in reason:
            return LedgerAway(f"{where} {sentence}")
    kind, step = (LedgerAway, f"; {_TRY_BOTH}") if is_lost(error) else (Failure, "")
    return kind(f"{where} can't be used: {_first_line(reason)}{step}")


def shown(url: URL | str) -> str:
    """The URL in its usual form, without its password."""
    parsed = make_url(url)
    return repr(parsed.set(drivername=parsed.get_backend_name()))


def _is_damage(error: DBAPIError) -> bool:
    # Raised by SQLite for a file that is not a database, or is damaged; its other errors have classes of their own.
    return type(error.orig) is sqlite3.DatabaseError


def _explained_sqlite(reason: str, where: str) -> Failure:
    if "disk is full" in reason:
        return DiskFull("the disk that holds the ledger is full; free some space and try again")
    if "readonly" in reason or "unable to open" in reason:
        return NotWritable(f"{where} can't be written; check the directory and its rights")
    return Failure(f"{where} can't be used: {reason}; check that no other program holds it")


def _first_line(reason: str) -> str:
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return lines[0].removeprefix("connection failed: ") if lines else "the server gave no reason"


def _patient(url: URL) -> dict[str, object]:
    """Time limits for a server that does not answer; parameters in the URL take precedence."""
    wanted: dict[str, object] = {
        "application_name": "downburst",
        "connect_timeout": CONNECT_TIMEOUT_S,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        # The server, too, must notice soon that a hub's machine is gone, and free its locks.
        "options": "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3",
    }
    return {name: value for name, value in wanted.items() if name not in url.query}


def _prepare_postgresql(connection: "Psycopg[Any]", _entry: ConnectionPoolEntry) -> None:
    # Confirmed commits survive a power cut with any defaults of server, database and role. Stricter settings stay.
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')"
    )
    connection.commit()


def _prepare_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    # SQLAlchemy issues BEGIN itself (below), because the driver would begin too late for a safe read-then-write.
    connection.isolation_level = None
    # FULL: with a write-ahead log, NORMAL keeps the file consistent at a power cut but loses the newest commits.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("downburst_writes", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


READERS = 3
CONNECTIONS = READERS + 2
"""For the reading threads, the writing thread and the hold."""
BUSY_TIMEOUT_S = 30.0
JOURNAL_ROOM_BYTES = 6_000_000
"""SQLite begins the log anew from 4 MB on, once that is in the database."""
PLENTY = 4
"""As for the hub's reserve."""
CONNECT_TIMEOUT_S = 5
WRITE_IT_SO = "write postgresql://ROLE@HOST:5432/DATABASE, or sqlite:////PATH/ledger.sqlite"
_DISK_FULL, _NO_RIGHT, _READ_ONLY = "53100", "42501", "25006"
# Shut down by an operator, by a crash, starting up, and too many connections.
_NOT_NOW = frozenset({"57P01", "57P02", "57P03", "53300"})
_NO_ANSWER = "the connection ended without an answer; start the server, or correct host and port"
_TRY_BOTH = "correct host and port, or start the server if it stays away"
_MEANINGS = (
    ("password authentication failed", "refused the password; correct it in the URL or in the file of PGPASSFILE"),
    ("no password supplied", "requires a password; give it in the URL or in the file of PGPASSFILE"),
    ("no pg_hba.conf entry", "does not accept this role from this host; allow it in the server's pg_hba.conf"),
    ('role "', "does not have the role; create it with CREATE ROLE ... LOGIN, or correct the URL"),
    ('database "', "does not have this database; create it with createdb, or correct the URL"),
    ("resolve host", "has an unknown host name; correct it, or the name service"),
    ("translate host name", "has an unknown host name; correct it, or the name service"),
    ("Connection refused", "can't be reached: nothing listens there; start the server, or correct host and port"),
    ("terminating connection", "has ended this connection; start the server if it stays away"),
    ("timeout", "can't be reached: its host does not answer; correct host and port, or let a firewall pass them"),
    ("starting up", "is starting; try again in a moment"),
    ("recovery mode", "is recovering from a crash; try again in a moment"),
    ("shutting down", "is shutting down; start it again"),
    ("too many", "has no connection left; raise max_connections there, or close other clients' connections"),
    # By a server that crashes, and by a port at which something else listens.
    ("closed the connection unexpectedly", f"can't be reached: {_NO_ANSWER}"),
    ("reset by peer", f"can't be reached: {_NO_ANSWER}"),
)
