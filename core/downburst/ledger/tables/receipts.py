"""Tables of receipts of sites, from the node's batches."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Index,
    String,
    Table,
    Text,
)

from downburst.ledger.tables.base import NUMBER, Instant, metadata

heads = Table(
    "heads",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("epoch", String(20), primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("at", Instant, nullable=False),
)


settled = Table(
    "settled",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("site", String(63), primary_key=True),
    Column("epoch", String(20), primary_key=True),
    Column("settled_to", BigInteger, nullable=False),
    Column("stored", BigInteger, nullable=False),
    Column("stored_bytes", BigInteger, nullable=False),
    Column("duplicates", BigInteger, nullable=False),
    Column("rejected", BigInteger, nullable=False),
    Column("expired", BigInteger, nullable=False),
    Column("last_receipt_at", Instant),
    Column("late_at_hub", BigInteger, nullable=False),
    Column("late_at_site", BigInteger, nullable=False),
)


feed_seconds = Table(
    "feed_seconds",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("site", String(63), primary_key=True),
    Column("second", BigInteger, primary_key=True, autoincrement=False),
    Column("stored", BigInteger, nullable=False),
    Column("late_at_hub", BigInteger, nullable=False),
    Column("late_at_site", BigInteger, nullable=False),
    Column("lost", BigInteger, nullable=False),
    Column("reordered", BigInteger, nullable=False),
    Column("jitter_us", BigInteger),
    Column("delays", JSON(none_as_null=True)),
    Index(None, "second"),
)


exceptions = Table(
    "exceptions",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("epoch", String(20), primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("site", String(63), primary_key=True),
    Column("outcome", String(16), nullable=False),
    Column("at", Instant, nullable=False),
    Index(None, "at"),
    Index(None, "site", "at"),
)


batches = Table(
    "batches",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("batch", Text, nullable=False, unique=True),
    Column("loaded_at", Instant, nullable=False),
    sqlite_autoincrement=True,
)
