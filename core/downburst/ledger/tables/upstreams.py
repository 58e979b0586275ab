"""Tables of other hubs and LDMs that supply products."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    String,
    Table,
    Text,
)

from downburst.ledger.tables.base import NUMBER, Instant, metadata

upstreams = Table(
    "upstreams",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("address", Text, nullable=False),
    # Used once; afterwards the node uses its own credential.
    Column("token", Text, nullable=False),
    Column("feeds", JSON, nullable=False),
    Column("created_at", Instant, nullable=False),
)


ldm_sources = Table(
    "ldm_sources",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("feeds", Text, nullable=False),
    Column("pattern", Text, nullable=False),
    Column("upstreams", JSON, nullable=False),
    Column("max_age_s", BigInteger, nullable=False),
    Column("created_at", Instant, nullable=False),
)


ldm_accepts = Table(
    "ldm_accepts",
    metadata,
    Column("id", NUMBER, primary_key=True, autoincrement=True),
    Column("feeds", Text, nullable=False),
    Column("pattern", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    sqlite_autoincrement=True,
)
