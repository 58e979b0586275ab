"""Every row of a ledger as plain values, to copy between databases of either kind."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, MetaData, Table, delete, func, insert, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from downburst.foundation.errors import BadInput, Failure
from downburst.ledger.storage.databases import connect, explained, is_of_server, options
from downburst.ledger.storage.partitions import Partitions, parts_in
from downburst.ledger.storage.schema import known_revisions, migrate

Row = Mapping[str, Any]
Tables = Iterable[tuple[str, Iterable[Row]]]
"""Names and rows, in an order in which every row follows the rows it refers to."""


class Dump:
    """One consistent snapshot of a ledger; changes nothing in it, not even an old schema."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.revision = MigrationContext.configure(connection).get_current_revision() or ""
        self._tables = [table for table in _reflected(connection).sorted_tables if table.name not in NOT_KEPT]

    @property
    def tables(self) -> list[str]:
        """Names of the tables; a table follows those that it refers to."""
        return [table.name for table in self._tables]

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table."""
        found = next(one for one in self._tables if one.name == table)
        for row in self._connection.execute(select(found).order_by(*found.primary_key.columns)):
            yield dict(row._mapping)

    def counters(self) -> dict[str, int]:
        """The greatest number that each self-numbering table has ever assigned."""
        counted = [table for table in self._tables if _numbers_itself(table)]
        return {table.name: _last_number(self._connection, table) for table in counted}


def look(url: str) -> tuple[Engine, Connection]:
    """A connection in a reading transaction, and the engine to dispose of afterwards."""
    engine = connect(url)
    try:
        connection = options(engine.connect(), writes=False)
        connection.begin()
        connection.execute(text("SELECT 1"))
    except DBAPIError as error:
        engine.dispose()
        raise explained(error, url) from error
    return engine, connection


def fill(url: str, revision: str, tables: Tables, counters: Mapping[str, int], *, migrated: bool = True) -> None:
    """Creates a ledger of these rows where there is none, then updates its schema (if `migrated`).

    Stores all rows or none."""
    check_revision(revision)
    engine = connect(url)
    try:
        with engine.begin() as connection:
            _refuse_rows(connection)
        migrate(engine, to=revision)
        with engine.begin() as connection:
            _insert(connection, tables, counters)
            Partitions(connection).spread()
        if migrated:
            migrate(engine)
    except SQLAlchemyError as error:
        if isinstance(error, DBAPIError) and is_of_server(error):
            raise explained(error, url) from error
        reason = str(error.orig if isinstance(error, DBAPIError) else error).splitlines()[0]
        raise Failure(
            f"the backup's rows do not fit together ({reason}): it was changed since, or made from a damaged "
            "ledger; make another backup"
        ) from error
    finally:
        engine.dispose()


def silence_receivers(url: str) -> None:
    """Removes everything from a copy of a ledger by which a hub contacts others: a copy must disturb nobody."""
    engine = connect(url)
    try:
        with engine.begin() as connection:
            found = _reflected(connection)
            for table in reversed(found.sorted_tables):
                if table.name in REACHING_OUT:
                    connection.execute(delete(table))
    finally:
        engine.dispose()


def check_revision(revision: str) -> None:
    """Refuses a schema unknown to this program."""
    if revision not in known_revisions():
        raise BadInput(
            f"the ledger was written by another version of Downburst (its schema is {revision or 'not named'!r}); "
            "use that version, or a newer one"
        )


def _refuse_rows(connection: Connection) -> None:
    for table in _reflected(connection).sorted_tables:
        if table.name not in NOT_KEPT and connection.scalar(select(func.count()).select_from(table)):
            raise BadInput(
                f"the ledger {connection.engine.url!r} has rows already (in {table.name}); name an empty database or "
                "another data directory"
            )


def _insert(connection: Connection, tables: Tables, counters: Mapping[str, int]) -> None:
    found = _reflected(connection)
    for name, rows in tables:
        if name not in found.tables:
            raise Failure(f"the backup names a table {name!r} that its own schema does not have; make another backup")
        table, chunk = found.tables[name], []
        for row in rows:
            chunk.append(dict(row))
            if len(chunk) >= CHUNK_ROWS:
                connection.execute(insert(table), chunk)
                chunk = []
        if chunk:
            connection.execute(insert(table), chunk)
    for name, last in counters.items():
        _continue_after(connection, found.tables[name], last)


def _reflected(connection: Connection) -> MetaData:
    found, parts = MetaData(), parts_in(connection)
    found.reflect(connection, only=lambda name, _: name not in parts)
    return found


def _numbers_itself(table: Table) -> bool:
    column = table.autoincrement_column
    return column is not None and not column.foreign_keys and table.name in SELF_NUMBERING


def _last_number(connection: Connection, table: Table) -> int:
    column = table.primary_key.columns[0]
    greatest = int(connection.scalar(select(func.max(column))) or 0)
    if connection.dialect.name == "sqlite":
        query = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
    else:
        query = text("SELECT last_value FROM pg_sequences WHERE sequencename = :name || '_' || :column || '_seq'")
        return max(greatest, int(connection.scalar(query, {"name": table.name, "column": column.name}) or 0))
    return max(greatest, int(connection.scalar(query, {"name": table.name}) or 0))


def _continue_after(connection: Connection, table: Table, last: int) -> None:
    if last < 1:
        return
    if connection.dialect.name == "sqlite":
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
        values = {"name": table.name, "last": last}
        connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), values)
        return
    column = table.primary_key.columns[0].name
    query = text("SELECT setval(pg_get_serial_sequence(:name, :column), :last)")
    connection.execute(query, {"name": table.name, "column": column, "last": last})


NOT_KEPT = frozenset({"alembic_version", "holders", "senders", "assignments", "placements", "node_clocks"})
"""Tables that describe a database or the running processes, not the hub."""
REACHING_OUT = frozenset(
    {
        "alarm_receivers",
        "circuit_ends",
        "circuit_events",
        "circuit_hops",
        "circuit_measurements",
        "circuit_offers",
        "circuit_providers",
        "circuits",
        "demand_orders",
        "ldm_accepts",
        "ldm_sources",
        "nsi_connections",
        "nsi_correlations",
        "nsi_orders",
        "nsi_replies",
        "probe_schedules",
        "site_receivers",
        "upstreams",
        "wis2_publishers",
        "wis2_sources",
    }
)
"""Tables that make a hub contact others by itself: receivers of alarms, other hubs, LDMs, ends of circuits."""
SELF_NUMBERING = frozenset(
    {
        "access_requests",
        "access_tokens",
        "alarms",
        "audit",
        "batches",
        "circuit_events",
        "circuits",
        "demand_orders",
        "faults",
        "ldm_accepts",
        "legs",
        "measurements",
        "nsi_correlations",
        "nsi_replies",
        "probe_schedules",
        "probes",
        "relay_log",
        "resends",
        "silences",
        "subscriptions",
        "wis2_holes",
    }
)
"""Tables with numbers that are never assigned twice."""
CHUNK_ROWS = 1_000
