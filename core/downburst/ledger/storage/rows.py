"""Shared code of the repositories: writing rows by their keys, singly or in bulk."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import Connection, Row, Table, and_, column, func, insert, literal, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.sqlite import insert as insert_into_sqlite
from sqlalchemy.sql import ColumnElement

from downburst.ledger.storage.databases import speaks_postgresql

if TYPE_CHECKING:
    from psycopg import Connection as Psycopg

Values = Mapping[str, Any]
Key = tuple[Any, ...]


def put(connection: Connection, table: Table, row: Values) -> None:
    """Replaces the row with the same primary key, or adds it."""
    changed = connection.execute(update(table).where(same_key(table, row)).values(dict(row)))
    if changed.rowcount == 0:
        connection.execute(insert(table).values(dict(row)))


def put_all(connection: Connection, table: Table, rows: Iterable[Values]) -> None:
    """Replaces rows with the same primary keys, or adds them; of several with one key the last wins."""
    newest = list({key_of(table, row): row for row in rows}.values())
    if not speaks_postgresql(connection):
        _put_into_sqlite(connection, table, newest)
    elif len(newest) < WORTH_COPYING:
        for row in newest:
            put(connection, table, row)
    else:
        _copy_into_postgresql(connection, table, newest)


def found(connection: Connection, table: Table, rows: Sequence[Values]) -> dict[Key, Row[Any]]:
    """The existing rows with the keys of `rows`, by key."""
    keys = [key_of(table, row) for row in rows]
    if speaks_postgresql(connection):
        held = _found_in_postgresql(connection, table, keys) if keys else []
    else:
        parts = (keys[at : at + KEYS_AT_ONCE] for at in range(0, len(keys), KEYS_AT_ONCE))
        held = [row for some in parts for row in _found_in_sqlite(connection, table, some)]
    return {key_of(table, row._asdict()): row for row in held}


def same_key(table: Table, row: Values) -> ColumnElement[bool]:
    """The condition that selects the row with the primary key of `row`."""
    return and_(*(column == row[column.name] for column in table.primary_key.columns))


def key_of(table: Table, row: Values) -> Key:
    """The primary key of a row, as plain values."""
    return tuple(_plain(row[column.name]) for column in table.primary_key.columns)


def _put_into_sqlite(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    if not rows:
        return
    wanted = insert_into_sqlite(table)
    others = {name: wanted.excluded[name] for name in rows[0] if name not in table.primary_key.columns}
    keys = [column.name for column in table.primary_key.columns]
    connection.execute(wanted.on_conflict_do_update(index_elements=keys, set_=others), [dict(row) for row in rows])


def _found_in_sqlite(connection: Connection, table: Table, keys: Sequence[Key]) -> Sequence[Row[Any]]:
    return connection.execute(select(table).where(tuple_(*table.primary_key.columns).in_(keys))).all()


def _found_in_postgresql(connection: Connection, table: Table, keys: Sequence[Key]) -> Sequence[Row[Any]]:
    """One query with an array for each column, for any number of keys."""
    columns = list(table.primary_key.columns)
    arrays = [
        literal(list(values), ARRAY(part.type)) for part, values in zip(columns, zip(*keys, strict=True), strict=True)
    ]
    asked = (
        func.unnest(*arrays).table_valued(*(column(part.name, part.type) for part in columns)).render_derived("asked")
    )
    return connection.execute(
        select(table).join(asked, and_(*(part == asked.c[part.name] for part in columns)))
    ).all()


def _copy_into_postgresql(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """Copies into a temporary table, updates the existing rows from it, and inserts the others."""
    name, incoming, names = table.name, f"incoming_{table.name}", list(rows[0])
    connection.execute(
        text(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {incoming} (LIKE {name} INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
        )
    )
    processors = [
        table.c[one].type.dialect_impl(connection.dialect).bind_processor(connection.dialect) for one in names
    ]
    quoted = ", ".join(f'"{one}"' for one in names)
    driver = cast("Psycopg[Any]", connection.connection.driver_connection)
    with driver.cursor() as cursor, cursor.copy(f"COPY {incoming} ({quoted}) FROM STDIN") as copy:
        for row in rows:
            values = (_plain(row[one]) for one in names)
            copy.write_row(
                [value if one is None else one(value) for value, one in zip(values, processors, strict=True)]
            )
    keys = [column.name for column in table.primary_key.columns]
    same = " AND ".join(f't."{one}" = i."{one}"' for one in keys)
    changes = ", ".join(f'"{one}" = i."{one}"' for one in names if one not in keys)
    for statement in (
        f"UPDATE {name} t SET {changes} FROM {incoming} i WHERE {same}",  # noqa: S608
        f"INSERT INTO {name} ({quoted}) SELECT {quoted} FROM {incoming} i "  # noqa: S608
        f"WHERE NOT EXISTS (SELECT 1 FROM {name} t WHERE {same})",
        f"DELETE FROM {incoming}",  # noqa: S608
    ):
        connection.execute(text(statement))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


WORTH_COPYING = 16
"""Below this, a statement per row costs less than the three of a copy."""
KEYS_AT_ONCE = 500
