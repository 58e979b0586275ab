"""The ledger's tables of callers and of their changes."""

from sqlalchemy import JSON, Boolean, Column, Float, ForeignKey, Index, String, Table, Text

from downburst.ledger.tables.base import NUMBER, Instant, metadata

users = Table(
    "users",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), index=True),
    Column("password_hash", Text),
    Column("active", Boolean, nullable=False),
    Column("created_at", Instant, nullable=False),
    # The identity of a user who signs in at a provider of OpenID Connect.
    Column("issuer", String(500)),
    Column("subject", String(255)),
    Index("ix_users_identity", "issuer", "subject", unique=True),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), index=True),
    Column("created_at", Instant, nullable=False),
    Column("created_by", String(64), nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("revoked_at", Instant),
    # The audit names tokens by number, so numbers are never reused.
    sqlite_autoincrement=True,
)

login_sessions = Table(
    "login_sessions",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("user", ForeignKey("users.name", ondelete="CASCADE"), index=True),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
)

login_links = Table(
    "login_links",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("user", ForeignKey("users.name", ondelete="CASCADE"), index=True),
    Column("expires_at", Instant, nullable=False),
    Column("used_at", Instant),
)

audit = Table(
    "audit",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False, index=True),
    Column("who", String(80), nullable=False),
    Column("role", String(16)),
    Column("peer", Text, nullable=False),
    Column("action", String(16), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("subject", Text, nullable=False),
    Column("before", JSON(none_as_null=True)),
    Column("after", JSON(none_as_null=True)),
    Index(None, "kind", "subject"),
    Index(None, "who", "at"),
    # Numbers are page cursors, so they are never reused.
    sqlite_autoincrement=True,
)

access_requests = Table(
    "access_requests",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("secret_sha256", String(64), nullable=False, unique=True),
    Column("site", String(63), nullable=False),
    Column("organisation", Text, nullable=False),
    Column("contact", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("multicast_interface", Text, nullable=False),
    Column("access_rate_bps", Float),
    Column("feeds", JSON, nullable=False),
    Column("note", Text, nullable=False),
    Column("peer", Text, nullable=False),
    Column("asked_at", Instant, nullable=False),
    Column("state", String(16), nullable=False),
    Column("decided_at", Instant),
    Column("decided_by", String(80), nullable=False),
    Column("answer", Text, nullable=False),
    # The database itself clears the invited user of a request once that user is removed by any means.
    Column("invites", ForeignKey("users.name", ondelete="SET NULL")),
    # Operators and sites refer to requests by number, so numbers are never reused.
    sqlite_autoincrement=True,
)
