"""The ledger's tables of alarms."""

from sqlalchemy import JSON, Column, Float, ForeignKey, Index, String, Table, Text

from downburst.ledger.tables.base import NUMBER, Instant, metadata

alarms = Table(
    "alarms",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("key", Text, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("feed", String(64)),
    Column("site", String(63)),
    Column("subject", Text, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("next_step", Text, nullable=False),
    Column("since", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("told_at", Instant),
    Column("end_told_at", Instant),
    Column("severity", String(16), nullable=False),
    Index(None, "ended_at"),
    # Receivers refer to alarms by number, so numbers are never reused.
    sqlite_autoincrement=True,
)

silences = Table(
    "silences",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("until", Instant, nullable=False),
    Column("by", String(80), nullable=False),
    Column("reason", Text, nullable=False),
    Column("kind", String(16)),
    Column("feed", String(64)),
    Column("site", String(63)),
    Column("begins", Instant),
    Column("alarm_key", Text),
    sqlite_autoincrement=True,
)

alarm_receivers = Table(
    "alarm_receivers",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("address", Text, nullable=False),
    Column("kinds", JSON, nullable=False),
    Column("feeds", JSON, nullable=False),
    Column("sites", JSON, nullable=False),
    Column("severities", JSON, nullable=False),
)

site_receivers = Table(
    "site_receivers",
    metadata,
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("address", Text, nullable=False),
    Column("kinds", JSON, nullable=False),
    Column("feeds", JSON, nullable=False),
    Column("severities", JSON, nullable=False),
)

objectives = Table(
    "objectives",
    metadata,
    Column("feed", ForeignKey("feeds.name", ondelete="CASCADE"), primary_key=True),
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), primary_key=True, index=True),
    Column("objective_ms", Float, nullable=False),
    Column("quantile", Float),
    Column("minutes", Float),
)
