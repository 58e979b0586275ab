"""Tables of the hub as an NSI provider: connections of requesters, their correlation ids, replies to them."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, String, Table, Text

from downburst.ledger.tables.base import NUMBER, Instant, metadata

nsi_connections = Table(
    "nsi_connections",
    metadata,
    Column("connection_id", String(64), primary_key=True),
    Column("subject", Text, nullable=False, index=True),
    Column("ended_at", Instant, index=True),
    Column("record", JSON, nullable=False),
)


nsi_correlations = Table(
    "nsi_correlations",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("subject", Text, nullable=False, index=True),
    Column("correlation_id", String(64), nullable=False, index=True),
    sqlite_autoincrement=True,
)


nsi_replies = Table(
    "nsi_replies",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column(
        "connection_id",
        ForeignKey("nsi_connections.connection_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("is_notice", Boolean, nullable=False),
    Column("reply_to", Text),
    Column("tries", BigInteger, nullable=False),
    Column("at", Instant, nullable=False),
    Column("record", JSON, nullable=False),
    sqlite_autoincrement=True,
)
