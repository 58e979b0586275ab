"""The database behind the ledger.

Synchronous SQLAlchemy in threads rather than an asynchronous driver: one code path for SQLite and PostgreSQL, plain
functions in tests and migrations, and one writing thread, which is all that SQLite allows anyway. Readers have
threads of their own, because with a write-ahead log they are not held up by the writer.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from downburst.clock import Clock, SystemClock
from downburst.errors import DiskFull, Failure, NotWritable
from downburst.ledger.book import Book

T = TypeVar("T")


class Ledger:
    """A database of the current schema and the threads that use it."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger-writer")
        self._readers = ThreadPoolExecutor(max_workers=READERS, thread_name_prefix="ledger-reader")

    @classmethod
    def open(cls, url: str, clock: Clock | None = None) -> "Ledger":
        """Connects, and brings the schema up to date."""
        engine = connect(url)
        try:
            migrate(engine)
        except OperationalError as error:
            engine.dispose()
            raise explained(error, url) from error
        return cls(engine, clock or SystemClock())

    @classmethod
    def look_into(cls, url: str, clock: Clock | None = None) -> "Ledger":
        """Connects for reading only: makes no database, no file and no change of schema; refuses another schema."""
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            options = {"mode": "ro", "uri": "true"}
            parsed = parsed.set(database=f"file:{quote(parsed.database)}", query=options)
            engine = create_engine(parsed, pool_size=READERS + 1, connect_args={"timeout": BUSY_TIMEOUT_S})
        else:
            engine = connect(url)
        try:
            _check_revision(engine)
        except OperationalError as error:
            engine.dispose()
            raise explained(error, url) from error
        except Failure:
            engine.dispose()
            raise
        return cls(engine, clock or SystemClock())

    async def write(self, work: Callable[[Book], T]) -> T:
        """Runs `work` in one transaction on the writing thread; what it raises undoes all of it."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._in_transaction, work, True)  # noqa: FBT003

    async def read(self, work: Callable[[Book], T]) -> T:
        """Runs `work`, which only reads, on a reading thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._in_transaction, work, False)  # noqa: FBT003

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[Book]:
        """A book whose changes are kept together when the block ends well; for commands and tests without a loop."""
        try:
            with self._engine.connect() as connection:
                prepared = connection.execution_options(downburst_writes=writes)
                with prepared.begin():
                    yield Book(prepared, self._clock)
        except OperationalError as error:
            raise explained(error, str(self._engine.url)) from error

    def close(self) -> None:
        """Waits for the work under way and lets the database go."""
        self._writer.shutdown()
        self._readers.shutdown()
        self._engine.dispose()

    def _in_transaction(self, work: Callable[[Book], T], writes: bool) -> T:  # noqa: FBT001
        with self.transaction(writes=writes) as book:
            return work(book)


def migrate(engine: Engine, to: str = "head") -> None:
    """Brings the schema to a revision of the chain that is packaged with this module, the newest if none is named."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, to)


def _check_revision(engine: Engine) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    wanted = ScriptDirectory.from_config(config).get_current_head()
    if found != wanted:
        raise Failure(
            f"the ledger has schema {found or 'none'}, and this release reads {wanted}; "
            "start the hub of this release on it once, which brings it up to date, or use the release that wrote it"
        )


def connect(url: str) -> Engine:
    """The database, whatever its schema."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(parsed, pool_size=READERS + 1, pool_pre_ping=True)
    engine = create_engine(parsed, pool_size=READERS + 1, connect_args={"timeout": BUSY_TIMEOUT_S})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    # SQLAlchemy says BEGIN itself (below), because the driver would begin too late for a safe read-then-write.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("downburst_writes", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def explained(error: OperationalError, url: str) -> Failure:
    """One sentence about a database that can't be used."""
    reason = str(error.orig)
    if "disk is full" in reason:
        return DiskFull("the disk that holds the ledger is full; free some space and try again")
    if "readonly" in reason or "unable to open" in reason:
        return NotWritable(f"the ledger {make_url(url)!r} can't be written; check the directory and its rights")
    return Failure(f"the ledger {make_url(url)!r} can't be used: {reason}; check that the database is up")


MIGRATIONS = Path(__file__).parent.parent / "migrations"
READERS = 3
BUSY_TIMEOUT_S = 30.0
