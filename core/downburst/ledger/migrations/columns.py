"""Columns as revisions write them: several of a kind in one line."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

Kind = TypeEngine[Any] | type[TypeEngine[Any]]


def keys(**lengths: int) -> list[sa.Column[str]]:
    """Texts of these lengths in the primary key."""
    return [sa.Column(name, sa.String(length), primary_key=True) for name, length in lengths.items()]


def required(kind: Kind, *names: str) -> list[sa.Column[Any]]:
    """Columns that have a value in every row."""
    return [sa.Column(name, kind, nullable=False) for name in names]


def optional(kind: Kind, *names: str) -> list[sa.Column[Any]]:
    """Columns that may be empty."""
    return [sa.Column(name, kind) for name in names]


def of(column: str) -> sa.ForeignKey:
    """A reference to the parent row; its deletion deletes this row."""
    return sa.ForeignKey(column, ondelete="CASCADE")


# SQLite numbers rows by itself only for a plain INTEGER key.
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
