"""Tables of bridges: sources of WIS2 with their notifications, accounts and holes; publishers and their outbox."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from downburst.ledger.tables.base import NUMBER, Day, Instant, metadata

wis2_sources = Table(
    "wis2_sources",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("feed", ForeignKey("feeds.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("brokers", JSON, nullable=False),
    Column("filters", JSON, nullable=False),
    Column("former_filters", JSON, nullable=False),
    Column("takes_recommended", Boolean, nullable=False),
    Column("bytes_per_day", BigInteger),
    Column("may_ask_private", Boolean, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("replay_url", String(500)),
    Column("logins", JSON, nullable=False),
)


wis2_notices = Table(
    "wis2_notices",
    metadata,
    Column("source", ForeignKey("wis2_sources.name", ondelete="CASCADE"), primary_key=True),
    Column("data_id", String(255), primary_key=True),
    Column("id", String(36), nullable=False),
    # A digest in hexadecimal digits, or the publication time.
    Column("digest", String(128), nullable=False),
    Column("published_at", Instant, nullable=False),
    Column("state", String(16), nullable=False),
    Column("topic", String(500), nullable=False),
    Column("centre", String(100), nullable=False),
    Column("announced_bytes", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("sequence", BigInteger),
    Column("settled_at", Instant),
    Index("ix_wis2_notices_state", "state", "source", "centre", "received_at"),
)


wis2_days = Table(
    "wis2_days",
    metadata,
    Column("source", ForeignKey("wis2_sources.name", ondelete="CASCADE"), primary_key=True),
    Column("centre", String(100), primary_key=True),
    Column("day", Day, primary_key=True),
    Column("products", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("copies", BigInteger, nullable=False),
    Column("refused", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
)


wis2_holes = Table(
    "wis2_holes",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("source", ForeignKey("wis2_sources.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("broker", Text, nullable=False),
    Column("from_at", Instant, nullable=False),
    Column("to_at", Instant, nullable=False),
    Column("reason", Text, nullable=False),
    Column("filled_at", Instant),
    Column("filled_by", Text),
    Column("fault", Text, nullable=False),
    sqlite_autoincrement=True,
)


wis2_publishers = Table(
    "wis2_publishers",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("feed", ForeignKey("feeds.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("centre", String(100), nullable=False),
    Column("subtopic", String(300), nullable=False),
    Column("metadata_id", String(200), nullable=False),
    Column("broker", JSON, nullable=False),
    Column("base_url", String(300), nullable=False),
    Column("pattern", Text, nullable=False),
    Column("media_type", String(100), nullable=False),
    Column("by_heading", Boolean, nullable=False),
    Column("republishes", Boolean, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("dataset", JSON),
    Column("created_at", Instant, nullable=False),
)


wis2_places = Table(
    "wis2_places",
    metadata,
    Column("publisher", ForeignKey("wis2_publishers.name", ondelete="CASCADE"), primary_key=True),
    Column("epoch", String(20), nullable=False),
    Column("sequence", BigInteger, nullable=False),
)


wis2_outgoing = Table(
    "wis2_outgoing",
    metadata,
    Column("publisher", ForeignKey("wis2_publishers.name", ondelete="CASCADE"), primary_key=True),
    Column("id", String(36), primary_key=True),
    Column("epoch", String(20), nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("data_id", String(255), nullable=False),
    Column("product_id", String(255), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("topic", String(500), nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("digest", String(128), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("made_at", Instant, nullable=False),
    Column("step", String(16), nullable=False),
    Column("announced_at", Instant),
    Column("reason", Text, nullable=False),
    Index("ix_wis2_outgoing_step", "publisher", "step"),
    Index("ix_wis2_outgoing_data_id", "publisher", "data_id"),
    Index("ix_wis2_outgoing_sequence", "publisher", "epoch", "sequence"),
)
