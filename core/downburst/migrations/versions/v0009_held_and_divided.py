"""Who writes the ledger; on PostgreSQL, tables of times in parts."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward. What a table held becomes its part for the rest, from which the ledger moves it to its own."""
    op.create_table(
        "holders",
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("writes", sa.BigInteger(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("role", name=op.f("pk_holders")),
    )
    if op.get_bind().dialect.name == "postgresql":
        for table, (column, key, indexes) in _DIVIDED.items():
            _divide(table, column, key, indexes)


def downgrade() -> None:
    """Back."""
    if op.get_bind().dialect.name == "postgresql":
        for table, (column, key, indexes) in _DIVIDED.items():
            _unite(table, column, key, indexes)
    op.drop_table("holders")


def _divide(table: str, column: str, key: str, indexes: dict[str, str]) -> None:
    rest = f"{table}_rest"
    # A divided table's key must hold the column that divides it, so the old key goes where it does not.
    holds_it = column in key.split(", ")
    op.execute(f"ALTER TABLE {table} RENAME TO {rest}")
    op.execute(
        f"ALTER TABLE {rest} RENAME CONSTRAINT pk_{table} TO pk_{rest}"
        if holds_it
        else f"ALTER TABLE {rest} DROP CONSTRAINT pk_{table}"
    )
    for name in indexes:
        op.execute(f"ALTER INDEX {name} RENAME TO {name}_rest")
    op.execute(f"CREATE TABLE {table} (LIKE {rest} INCLUDING DEFAULTS) PARTITION BY RANGE ({column})")
    op.execute(
        f"ALTER TABLE {table} ADD CONSTRAINT pk_{table} PRIMARY KEY ({key if holds_it else f'{key}, {column}'})"
    )
    for name, columns in indexes.items():
        op.execute(f"CREATE INDEX {name} ON {table} ({columns})")
    op.execute(f"ALTER TABLE {table} ATTACH PARTITION {rest} DEFAULT")


def _unite(table: str, column: str, key: str, indexes: dict[str, str]) -> None:
    del column
    op.execute(f"ALTER TABLE {table} RENAME TO {table}_divided")
    op.execute(f"CREATE TABLE {table} (LIKE {table}_divided INCLUDING DEFAULTS)")
    op.execute(f"INSERT INTO {table} SELECT * FROM {table}_divided")  # noqa: S608
    op.execute(f"DROP TABLE {table}_divided")
    op.execute(f"ALTER TABLE {table} ADD CONSTRAINT pk_{table} PRIMARY KEY ({key})")
    for name, columns in indexes.items():
        op.execute(f"CREATE INDEX {name} ON {table} ({columns})")


_DIVIDED = {
    "sketches": ("minute", "feed, minute, site, transport, kind", {"ix_sketches_minute": "minute"}),
    "sketch_hours": ("hour", "feed, hour, site, transport, kind", {"ix_sketch_hours_hour": "hour"}),
    "sketch_days": ("day", "feed, day, site, transport, kind", {"ix_sketch_days_day": "day"}),
    "exceptions": (
        "at",
        "feed, epoch, sequence, site",
        {"ix_exceptions_at": "at", "ix_exceptions_site_at": "site, at"},
    ),
}
