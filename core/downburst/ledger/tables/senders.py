"""The ledger's tables of the nodes that send for a hub."""

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, String, Table, Text

from downburst.ledger.tables.base import Instant, metadata

senders = Table(
    "senders",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("address", Text, nullable=False),
    Column("public_key", Text, nullable=False),
    Column("certificate", Text),
    Column("authority", Text),
    Column("beats", BigInteger, nullable=False),
    Column("load_bps", Float, nullable=False),
    Column("draining", Boolean, nullable=False),
    Column("seen_at", Instant, nullable=False),
)

assignments = Table(
    "assignments",
    metadata,
    Column("feed", ForeignKey("feeds.name", ondelete="CASCADE"), primary_key=True),
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), primary_key=True, index=True),
    Column("sender", String(63), nullable=False),
)

node_clocks = Table(
    "node_clocks",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("ahead_us", BigInteger, nullable=False),
    Column("bound_us", BigInteger, nullable=False),
    Column("compared_at", Instant, nullable=False),
)

placements = Table(
    "placements",
    metadata,
    # One row, for the set of assignments as a whole.
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
)
