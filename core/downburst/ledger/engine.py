"""The ledger: a database and the threads that use it.

Synchronous SQLAlchemy in threads rather than an asynchronous driver: one code path for SQLite and PostgreSQL, plain
functions in tests and migrations, and one writing thread, which is all that SQLite allows anyway. Readers have
threads of their own, because with a write-ahead log they are not held up by the writer.

A server that goes away is waited for. A transaction whose connection broke is run again on another one, and whether
one took place whose very commit lost its answer is asked afterwards: every write happens once.
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
        """Since when the database has been away, as the last work found out."""
        return self._outages.current

    def hold(self, role: str = "hub") -> None:
        """Makes this process the one that writes; refuses while another one is alive. On SQLite nothing to do."""
        if self._engine.dialect.name == "postgresql":
            with _explaining(self._engine):
                self._hold = Hold(self._engine, role, self._clock.now())

    async def renew_hold(self) -> None:
        """Holds the ledger again after its server was away; refuses if another process was faster."""
        hold = self._hold
        if hold is not None:
            # On the writing thread, which counts writes as well.
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._writer, self._renew, hold)

    async def write(self, work: Callable[[Transaction], T], *, patience_s: float = PATIENCE_S) -> T:
        """Runs `work` in one transaction on the writing thread; what it raises undoes all of it.

        While the database is away it is tried again, so `work` may run several times and must touch nothing else.
        """
        # The audit names who acts in the task that asks.
        work_on = partial(copy_context().run, self._persist, work, True, patience_s)  # noqa: FBT003
        return await asyncio.get_running_loop().run_in_executor(self._writer, work_on)

    async def read(self, work: Callable[[Transaction], T], *, patience_s: float = PATIENCE_S) -> T:
        """Runs `work`, which only reads, on a reading thread; tried again like a write."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._persist, work, False, patience_s)  # noqa: FBT003

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[Transaction]:
        """A transaction whose changes are kept when the block ends well; for commands and tests without a loop."""
        try:
            with self._engine.connect() as connection, options(connection, writes=writes).begin():
                yield Transaction(connection, self._clock)
        except DBAPIError as error:
            if not is_of_server(error):
                raise
            raise explained(error, self._engine.url) from error

    def close(self) -> None:
        """Waits for the work under way and lets the database go."""
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
            # A server that goes away in the middle of it is asked again at the next look.
            with suppress(ConnectionLost):
                self._attempt(lambda _: hold.renew(self._clock.now()))


class _Held(Generic[T]):
    """One write to a ledger that is held: it takes place once, whatever becomes of its connections."""

    def __init__(self, hold: Hold, work: Callable[[Transaction], T], clock: Clock) -> None:
        self._hold = hold
        self._work = work
        self._clock = clock
        self._open: tuple[int, T] | None = None
        """Number and result of a transaction whose commit was not answered."""

    def run(self, connection: Connection) -> T:
        """Runs the work, unless it turns out to have been committed before."""
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
    """Brings the schema up to date; the revisions before and after."""
    engine = connect(url)
    with _explaining(engine):
        before = migrate(engine)
    engine.dispose()
    return before.found, before.wanted


def standing_of(url: str) -> Standing:
    """Where a database stands in the chain of schemas; makes nothing."""
    if (file := file_of(url)) is not None and not file.exists():
        return Standing.nowhere()
    engine = connect_to_read(url)
    with _explaining(engine), engine.connect() as connection:
        found = standing(connection)
    engine.dispose()
    return found


@contextmanager
def _explaining(engine: Engine) -> Iterator[None]:
    """Lets the engine go, and says what its database refused, if the block fails."""
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
