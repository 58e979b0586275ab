"""Tables of latencies."""

from sqlalchemy import (
    Column,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
)

from downburst.ledger.tables.base import metadata

latency_minutes = Table(
    "latency_minutes",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("minute", Integer, primary_key=True, autoincrement=False),
    Column("packed", LargeBinary, nullable=False),
    Index(None, "minute"),
)


latency_sheets = Table(
    "latency_sheets",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("kind", String(16), primary_key=True),
    # Minutes that each sketch covers; those of one minute are stored by the hour.
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("minute", Integer, primary_key=True, autoincrement=False),
    Column("packed", LargeBinary, nullable=False),
    Index(None, "step", "minute"),
)
