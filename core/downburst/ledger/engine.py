"""The ledger: a database and the threads that use it.

Synchronous SQLAlchemy in threads rather than an asynchronous driver: one code path for SQLite and PostgreSQL, plain
functions in tests and migrations, and one writing thread, the most that SQLite allows anyway. Readers have threads
of their own, because with a write-ahead log the writer does not block them.

If the server goes away, the ledger waits for it. A transaction with a broken connection is run again on another one.
If a commit got no answer, the ledger checks afterwards whether it took place: every write happens once.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from downburst.foundation.clock import Clock, SystemClock
from downburst.foundation.errors import DownburstError, LedgerAway
from downburst.ledger.storage.databases import (
    READERS,
    connect,
    connect_to_read,
    explained,
    file_of,
    hold_journal_room,
    is_lost,
    is_of_server,
    options,
)
from downburst.ledger.storage.holding import Hold
from downburst.ledger.storage.outage import PATIENCE_S, ConnectionLost, Outage, Outages
from downburst.ledger.storage.schema import Standing, check_current, migrate, standing
from downburst.ledger.transaction import Transaction

T = TypeVar("T")


class Ledger:
    """A database of the current schema and the threads that use it."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger-writer")
        self._readers = ThreadPoolExecutor(max_workers=READERS, thread_name_prefix="ledger-reader")
        self._outages = Outages()
        self._hold: Hold | None = None

    @classmethod
    def open(cls, url: str, clock: Clock | None = None) -> "Ledger":
        """Connects, and brings the schema up to date."""
        engine = connect(url)
        with _explaining(engine):
            migrate(engine)
        return cls(engine, clock or SystemClock())

    @classmethod
    def look_into(cls, url: str, clock: Clock | None = None) -> "Ledger":
        """Connects for reading only: makes no database, no file and no change of schema; refuses another schema."""
        engine = connect_to_read(url)
        with _explaining(engine), engine.connect() as connection:
            check_current(connection)
        return cls(engine, clock or SystemClock())

    @property
    def outage(self) -> Outage | None:
        """The start of the database's outage, as found by the last work."""
        return self._outages.current

    def hold_journal_room(self) -> None:
        """Keeps room for changes on a full disk. No-op on PostgreSQL."""
        hold_journal_room(self._engine.url.render_as_string(hide_password=False))

    def hold(self, role: str = "hub") -> None:
        """Makes this process the only writer; refuses while another one is alive. No-op on SQLite."""
        if self._engine.dialect.name == "postgresql":
            with _explaining(self._engine):
                self._hold = Hold(self._engine, role, self._clock.now())

    async def renew_hold(self) -> None:
        """Acquires the hold again after a server outage; refuses if another process was faster."""
        hold = self._hold
        if hold is not None:
            # On the writing thread, which counts writes as well.
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._writer, self._renew, hold)

    async def write(self, work: Callable[[Transaction], T], *, patience_s: float = PATIENCE_S) -> T:
        """Runs `work` in one transaction on the writing thread; an exception rolls all of it back.

        While the database is away it is retried, so `work` may run several times and must not change anything else.
        """
        # The audit names the actor of the task that calls.
        work_on = partial(copy_context().run, self._persist, work, True, patience_s)  # noqa: FBT003
        return await asyncio.get_running_loop().run_in_executor(self._writer, work_on)

    async def read(self, work: Callable[[Transaction], T], *, patience_s: float = PATIENCE_S) -> T:
        """Runs `work`, which only reads, on a reading thread; retried like a write."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._persist, work, False, patience_s)  # noqa: FBT003

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[Transaction]:
        """A transaction that is committed when the block succeeds; for commands and tests without a loop."""
        try:
            with self._engine.connect() as connection, options(connection, writes=writes).begin():
                yield Transaction(connection, self._clock)
        except DBAPIError as error:
            if not is_of_server(error):
                raise
            raise explained(error, self._engine.url) from error

    def close(self) -> None:
        """Waits for running work and closes the database."""
        self._outages.end()
        self._writer.shutdown()
        self._readers.shutdown()
        if self._hold is not None:
            self._hold.release()
        self._engine.dispose()

    def _persist(self, work: Callable[[Transaction], T], writes: bool, patience_s: float) -> T:  # noqa: FBT001
        run = (
            _Held(self._hold, work, self._clock).run if writes and self._hold else self._plainly(work, writes=writes)
        )
        return self._outages.through(lambda: self._attempt(run), patience_s=patience_s)

    def _plainly(self, work: Callable[[Transaction], T], *, writes: bool) -> Callable[[Connection], T]:
        def run(connection: Connection) -> T:
            with options(connection, writes=writes).begin():
                return work(Transaction(connection, self._clock))

        return run

    def _attempt(self, run: Callable[[Connection], T]) -> T:
        try:
            with self._engine.connect() as connection:
                return run(connection)
        except DBAPIError as error:
            if not is_of_server(error):
                raise
            failure = explained(error, self._engine.url)
            if is_lost(error):
                raise ConnectionLost(LedgerAway(failure.sentence)) from error
            raise failure from error

    def _renew(self, hold: Hold) -> None:
        if self._outages.current is None:
            # If the server goes away during the renewal, the next check tries again.
            with suppress(ConnectionLost):
                self._attempt(lambda _: hold.renew(self._clock.now()))


class _Held(Generic[T]):
    """One write to a held ledger: it takes place once, even if connections break."""

    def __init__(self, hold: Hold, work: Callable[[Transaction], T], clock: Clock) -> None:
        self._hold = hold
        self._work = work
        self._clock = clock
        self._open: tuple[int, T] | None = None
        """Number and result of a transaction whose commit was not answered."""

    def run(self, connection: Connection) -> T:
        """Runs the work, unless it proves to have been committed before."""
        with options(connection, writes=True).begin():
            if self._open is not None and self._hold.was_written(connection, self._open[0]):
                number, result = self._open
            else:
                self._open = None
                number = self._hold.count(connection)
                result = self._work(Transaction(connection, self._clock))
                # From here on the commit may take place without an answer.
                self._open = number, result
        self._hold.written(number)
        return result


def migrate_ledger(url: str) -> tuple[str | None, str]:
    """Updates the schema; returns the revisions before and after."""
    engine = connect(url)
    with _explaining(engine):
        before = migrate(engine)
    engine.dispose()
    return before.found, before.wanted


def standing_of(url: str) -> Standing:
    """The position of a database in the chain of schemas; creates nothing."""
    if (file := file_of(url)) is not None and not file.exists():
        return Standing.nowhere()
    engine = connect_to_read(url)
    with _explaining(engine), engine.connect() as connection:
        found = standing(connection)
    engine.dispose()
    return found


@contextmanager
def _explaining(engine: Engine) -> Iterator[None]:
    """Disposes of the engine and explains the database's refusal if the block fails."""
    try:
        yield
    except DBAPIError as error:
        engine.dispose()
        if not is_of_server(error):
            raise
        raise explained(error, engine.url) from error
    except DownburstError:
        engine.dispose()
        raise
