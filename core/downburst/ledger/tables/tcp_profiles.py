"""The table of TCP profiles."""

from sqlalchemy import JSON, Column, String, Table

from downburst.ledger.tables.base import Instant, metadata

tcp_profiles = Table(
    "tcp_profiles",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("prefix", String(64), nullable=False, unique=True),
    Column("mode", String(16), nullable=False),
    Column("knobs", JSON, nullable=False),
    Column("learnt", JSON(none_as_null=True)),
    Column("trial", JSON(none_as_null=True)),
    Column("created_at", Instant, nullable=False),
    Column("changed_at", Instant, nullable=False),
)
