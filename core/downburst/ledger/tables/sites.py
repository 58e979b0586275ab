"""Tables of sites: their settings, credentials, subscriptions and resends."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    String,
    Table,
    Text,
)

from downburst.ledger.tables.base import NUMBER, Instant, metadata

sites = Table(
    "sites",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("organisation", Text, nullable=False),
    Column("contact", Text, nullable=False),
    Column("place_text", Text, nullable=False),
    Column("latitude", Float),
    Column("longitude", Float),
    Column("multicast_interface", Text, nullable=False),
    Column("circuit_port", Text),
    Column("first_vlan", Integer),
    Column("last_vlan", Integer),
    Column("access_rate_bps", Float),
    Column("ceiling_mbps_by_hour", JSON, nullable=False),
    Column("allow", JSON, nullable=False),
    Column("limits", JSON),
    Column("multicast", Boolean, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("data_connections", Integer),
    Column("created_at", Instant, nullable=False),
    Column("ldm_host", Text),
)


credentials = Table(
    "credentials",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Instant, nullable=False),
    Column("peer", Text, nullable=False),
    Column("expires_at", Instant),
    Column("revoked_at", Instant),
    Column("replaces", String(64)),
    Column("replaced_at", Instant),
    Column("asked_at", Instant),
)


tokens = Table(
    "tokens",
    metadata,
    Column("secret_sha256", String(64), primary_key=True),
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("credential_seconds", BigInteger),
    Column("used_at", Instant),
    Column("used_by", String(64)),
    Column("used_peer", Text),
)


subscriptions = Table(
    "subscriptions",
    metadata,
    Column("id", NUMBER, primary_key=True, autoincrement=True),
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("feed", ForeignKey("feeds.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("pattern", Text, nullable=False),
    Column("not_pattern", Text),
    Column("created_at", Instant, nullable=False),
    Column("in_order", Boolean, nullable=False),
    Column("hold_s", Float, nullable=False),
    Column("max_age_s", Float),
    Column("start_at", Instant),
    sqlite_autoincrement=True,
)


resends = Table(
    "resends",
    metadata,
    Column("id", NUMBER, primary_key=True, autoincrement=True),
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("feed", ForeignKey("feeds.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("kind", String(16), nullable=False),
    Column("from_at", Instant, nullable=False),
    Column("to_at", Instant, nullable=False),
    Column("pattern", Text, nullable=False),
    Column("not_pattern", Text),
    Column("had", JSON, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("requested_at", Instant, nullable=False),
    Column("requested_by", Text, nullable=False),
    Column("ended_at", Instant),
    Column("products", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("expired", BigInteger, nullable=False),
    # A site remembers the number of each resend it received, so numbers are never reused.
    sqlite_autoincrement=True,
)
