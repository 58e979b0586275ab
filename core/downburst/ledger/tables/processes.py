"""Tables of the processes of a hub: writers of the ledger, their faults, requests that they answered."""

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    String,
    Table,
    Text,
)

from downburst.ledger.tables.base import NUMBER, Instant, metadata

holders = Table(
    "holders",
    metadata,
    Column("role", String(32), primary_key=True),
    # The process that writes the ledger in this role, and the number of its writes.
    Column("token", String(32), nullable=False),
    Column("writes", BigInteger, nullable=False),
    Column("host", Text, nullable=False),
    Column("at", Instant, nullable=False),
)


faults = Table(
    "faults",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("feed", String(64)),
    Column("site", String(63)),
    Column("next_step", Text, nullable=False),
    sqlite_autoincrement=True,
)


answers = Table(
    "answers",
    metadata,
    Column("key_sha256", String(64), primary_key=True),
    Column("at", Instant, nullable=False, index=True),
    Column("request_sha256", String(64), nullable=False),
    Column("status", Integer),
    Column("body", Text),
    Column("etag", Text, nullable=False),
    Column("tenant", Text, nullable=False, index=True),
)
