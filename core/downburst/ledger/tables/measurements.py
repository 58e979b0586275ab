"""Tables of measurements by other systems."""

from sqlalchemy import JSON, Column, Float, ForeignKey, Index, String, Table, Text

from downburst.ledger.tables.base import NUMBER, Instant, metadata

test_points = Table(
    "test_points",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("addresses", JSON, nullable=False),
    Column("site", ForeignKey("sites.name", ondelete="SET NULL"), index=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
)


measurements = Table(
    "measurements",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("point", ForeignKey("test_points.name", ondelete="CASCADE"), nullable=False),
    Column("run", String(64), nullable=False),
    Column("at", Instant, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("source", String(253), nullable=False, index=True),
    Column("destination", String(253), nullable=False, index=True),
    Column("value", Float),
    Column("unit", String(8)),
    Column("error", Float),
    Column("lost_share", Float),
    Column("more", JSON, nullable=False),
    Column("note", Text, nullable=False),
    Column("refused", Text, nullable=False),
    Index("ix_measurements_point_run_at", "point", "run", "at", unique=True),
    sqlite_autoincrement=True,
)
