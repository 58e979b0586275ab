"""What the repositories share: writing a row by its key, in the SQL that both databases speak."""

from collections.abc import Mapping

from sqlalchemy import Connection, Table, and_, insert, update
from sqlalchemy.sql import ColumnElement


def put(connection: Connection, table: Table, row: Mapping[str, object]) -> None:
    """Writes the row over the one of the same primary key, or adds it."""
    changed = connection.execute(update(table).where(same_key(table, row)).values(dict(row)))
    if changed.rowcount == 0:
        connection.execute(insert(table).values(dict(row)))


def same_key(table: Table, row: Mapping[str, object]) -> ColumnElement[bool]:
    """The condition that picks the row with the primary key of `row`."""
    return and_(*(column == row[column.name] for column in table.primary_key.columns))
