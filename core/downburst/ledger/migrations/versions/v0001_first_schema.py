"""The first schema."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import NUMBER, keys, of, optional, required

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    _feeds_and_sites()
    _what_sites_have()
    _exchange()
    _plans()
    _receipts()
    _figures()
    _circuits()
    _parts_of_circuits()
    _users()
    _requests()
    _alarms()
    _receivers()
    _processes()
    if _on_postgresql():
        _partition()


def _feeds_and_sites() -> None:
    op.create_table(
        "feeds",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("feed_class", sa.String(16), nullable=False),
        sa.Column("retention_hours", sa.Float, nullable=False),
        sa.Column("retention_bytes", sa.BigInteger, nullable=False),
        sa.Column("objective_ms", sa.Float, nullable=False),
        sa.Column("duplicate_rule", sa.String(32), nullable=False),
        sa.Column("durability", sa.String(16), nullable=False),
        *required(sa.BigInteger, "max_product_bytes", "unicast_leg", "created_at"),
        *optional(sa.Text, "ldm_feed_type", "ldm_pattern"),
    )
    op.create_table(
        "sites",
        sa.Column("name", sa.String(63), primary_key=True),
        *required(sa.Text, "organisation", "contact", "place_text"),
        *optional(sa.Float, "latitude", "longitude"),
        sa.Column("multicast_interface", sa.Text, nullable=False),
        sa.Column("circuit_port", sa.Text),
        *optional(sa.Integer, "first_vlan", "last_vlan"),
        sa.Column("access_rate_bps", sa.Float),
        *required(sa.JSON, "ceiling_mbps_by_hour", "allow"),
        *required(sa.Boolean, "multicast", "active"),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("data_connections", sa.Integer),
        sa.Column("ldm_host", sa.Text),
        sa.Column("limits", sa.JSON),
    )


def _what_sites_have() -> None:
    op.create_table(
        "credentials",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("site", sa.String(63), of("sites.name"), nullable=False, index=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("peer", sa.Text, nullable=False),
        *optional(sa.BigInteger, "expires_at", "revoked_at"),
        sa.Column("replaces", sa.String(64)),
        *optional(sa.BigInteger, "replaced_at", "asked_at"),
    )
    op.create_table(
        "tokens",
        sa.Column("secret_sha256", sa.String(64), primary_key=True),
        sa.Column("site", sa.String(63), of("sites.name"), nullable=False, index=True),
        *required(sa.BigInteger, "created_at", "expires_at"),
        *optional(sa.BigInteger, "credential_seconds", "used_at"),
        sa.Column("used_by", sa.String(64)),
        sa.Column("used_peer", sa.Text),
    )
    op.create_table(
        "subscriptions",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("site", sa.String(63), of("sites.name"), nullable=False, index=True),
        sa.Column("feed", sa.String(64), of("feeds.name"), nullable=False, index=True),
        sa.Column("pattern", sa.Text, nullable=False),
        sa.Column("not_pattern", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("in_order", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("hold_s", sa.Float, nullable=False, server_default="2"),
        sa.Column("max_age_s", sa.Float),
        sa.Column("start_at", sa.BigInteger),
        sqlite_autoincrement=True,
    )


def _exchange() -> None:
    op.create_table(
        "resends",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("site", sa.String(63), of("sites.name"), nullable=False, index=True),
        sa.Column("feed", sa.String(64), of("feeds.name"), nullable=False, index=True),
        sa.Column("kind", sa.String(16), nullable=False),
        *required(sa.BigInteger, "from_at", "to_at"),
        sa.Column("pattern", sa.Text, nullable=False),
        sa.Column("not_pattern", sa.Text),
        sa.Column("had", sa.JSON, nullable=False),
        sa.Column("state", sa.String(16), nullable=False, index=True),
        sa.Column("requested_at", sa.BigInteger, nullable=False),
        sa.Column("requested_by", sa.Text, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        *required(sa.BigInteger, "products", "bytes", "expired"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "upstreams",
        sa.Column("name", sa.String(63), primary_key=True),
        *required(sa.Text, "address", "token"),
        sa.Column("feeds", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "ldm_sources",
        sa.Column("name", sa.String(63), primary_key=True),
        *required(sa.Text, "feeds", "pattern"),
        sa.Column("upstreams", sa.JSON, nullable=False),
        *required(sa.BigInteger, "max_age_s", "created_at"),
    )
    op.create_table(
        "ldm_accepts",
        sa.Column("id", NUMBER, primary_key=True),
        *required(sa.Text, "feeds", "pattern", "host"),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )


def _plans() -> None:
    op.create_table(
        "legs",
        sa.Column("leg", NUMBER, primary_key=True),
        sa.Column("feed", sa.String(64), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "plans",
        sa.Column("feed", sa.String(64), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("pinned", sa.Boolean, nullable=False),
        *required(sa.JSON, "legs", "candidates", "figures"),
    )
    op.create_table(
        "pins",
        sa.Column("feed", sa.String(64), of("feeds.name"), primary_key=True),
        sa.Column("transport", sa.String(32), nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "leg_counters",
        sa.Column("feed", sa.String(64), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("leg", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("transport", sa.String(32), nullable=False),
        sa.Column("sites", sa.Integer, nullable=False),
        *required(sa.BigInteger, "products", "product_bytes", "egress_bytes", "repair_bytes"),
        *required(sa.BigInteger, "control_bytes", "unicast_equivalent_bytes"),
    )


def _receipts() -> None:
    op.create_table("heads", *keys(feed=64, epoch=20), *required(sa.BigInteger, "sequence", "at"))
    op.create_table(
        "settled",
        *keys(feed=64, site=63, epoch=20),
        *required(sa.BigInteger, "settled_to", "stored", "stored_bytes", "duplicates", "rejected", "expired"),
        sa.Column("last_receipt_at", sa.BigInteger),
    )
    op.create_table(
        "exceptions",
        *keys(feed=64, epoch=20),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("site", sa.String(63), primary_key=True),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("at", sa.BigInteger, primary_key=_on_postgresql(), autoincrement=False, nullable=False, index=True),
        sa.Index(None, "site", "at"),
        postgresql_partition_by="RANGE (at)",
    )
    op.create_table(
        "batches",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("batch", sa.Text, nullable=False, unique=True),
        sa.Column("loaded_at", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "faults",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("feed", sa.String(64)),
        sa.Column("site", sa.String(63)),
        sa.Column("next_step", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )


def _figures() -> None:
    op.create_table(
        "latency_minutes",
        *keys(feed=64, kind=16),
        sa.Column("minute", sa.Integer, primary_key=True, autoincrement=False, index=True),
        sa.Column("packed", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "latency_sheets",
        *keys(feed=64, kind=16),
        sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("minute", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("packed", sa.LargeBinary, nullable=False),
        sa.Index(None, "step", "minute"),
        postgresql_partition_by="RANGE (minute)",
    )
    op.create_table(
        "traffic_minutes",
        sa.Column("feed", sa.String(64), primary_key=True),
        sa.Column("minute", sa.Integer, primary_key=True, autoincrement=False),
        *required(sa.BigInteger, "products", "bytes", "peak_1s_bytes"),
    )
    op.create_table(
        "traffic_hours",
        sa.Column("feed", sa.String(64), primary_key=True),
        sa.Column("hour", sa.Integer, primary_key=True, autoincrement=False, index=True),
        *required(sa.BigInteger, "products", "bytes"),
    )


def _circuits() -> None:
    op.create_table(
        "circuit_ports",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("rate_bps", sa.BigInteger, nullable=False),
        sa.Column("site", sa.String(63)),
        *required(sa.Text, "interface", "underlay", "stp"),
        *optional(sa.Integer, "first_vlan", "last_vlan"),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("port_rate_bps", sa.BigInteger),
    )
    op.create_table(
        "circuits",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("request_id", sa.String(100), nullable=False, unique=True),
        sa.Column("asked_sha256", sa.String(64), nullable=False),
        *required(sa.BigInteger, "rate_out_bps", "rate_in_bps", "begin"),
        sa.Column("end", sa.BigInteger),
        *required(sa.String(16), "driver", "replication"),
        sa.Column("group", sa.Text),
        sa.Column("cap", sa.String(8), nullable=False),
        sa.Column("shaped_share", sa.Float, nullable=False),
        sa.Column("burst_bytes", sa.Integer),
        *required(sa.Text, "description", "ticket", "requested_by"),
        sa.Column("state", sa.String(16), nullable=False, index=True),
        sa.Column("reason", sa.Text, nullable=False),
        *required(sa.BigInteger, "since", "created_at"),
        sqlite_autoincrement=True,
    )


def _parts_of_circuits() -> None:
    op.create_table(
        "circuit_ends",
        sa.Column("circuit", NUMBER, of("circuits.number"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("port", sa.String(63), nullable=False, index=True),
        sa.Column("site", sa.String(63), index=True),
        *optional(sa.Integer, "first_vlan", "last_vlan", "vlan"),
        sa.Column("address", sa.Text),
    )
    op.create_table(
        "circuit_events",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("circuit", NUMBER, of("circuits.number"), nullable=False, index=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        *required(sa.String(16), "event", "state"),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("step", sa.String(16), nullable=False),
        *required(sa.Text, "hop", "remedy", "by"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "circuit_measurements",
        sa.Column("circuit", NUMBER, of("circuits.number"), primary_key=True),
        sa.Column("site", sa.String(63), primary_key=True),
        sa.Column("direction", sa.String(8), primary_key=True),
        *required(sa.BigInteger, "at", "rate_bps", "reserved_bps"),
        sa.Column("loss_share", sa.Float, nullable=False),
        sa.Column("round_trip_us", sa.BigInteger),
        sa.Column("cause", sa.String(32), nullable=False),
        *required(sa.Text, "sentence", "remedy"),
    )


def _users() -> None:
    op.create_table(
        "users",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("site", sa.String(63), of("sites.name"), index=True),
        sa.Column("password_hash", sa.Text),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "access_tokens",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("site", sa.String(63), of("sites.name"), index=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.String(64), nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "login_sessions",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("user", sa.String(64), of("users.name"), index=True),
        *required(sa.BigInteger, "expires_at", "created_at"),
    )
    op.create_table(
        "login_links",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("user", sa.String(64), of("users.name"), index=True),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("used_at", sa.BigInteger),
    )


def _requests() -> None:
    op.create_table(
        "audit",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False, index=True),
        sa.Column("who", sa.String(80), nullable=False),
        sa.Column("role", sa.String(16)),
        sa.Column("peer", sa.Text, nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        *optional(sa.JSON, "before", "after"),
        sa.Index(None, "kind", "subject"),
        sa.Index(None, "who", "at"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "access_requests",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("secret_sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("site", sa.String(63), nullable=False),
        *required(sa.Text, "organisation", "contact", "place", "multicast_interface"),
        sa.Column("access_rate_bps", sa.Float),
        sa.Column("feeds", sa.JSON, nullable=False),
        *required(sa.Text, "note", "peer"),
        sa.Column("asked_at", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("decided_at", sa.BigInteger),
        sa.Column("decided_by", sa.String(80), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("invites", sa.String(64), sa.ForeignKey("users.name", ondelete="SET NULL")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "answers",
        sa.Column("key_sha256", sa.String(64), primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False, index=True),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("body", sa.Text),
        sa.Column("etag", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False, server_default="", index=True),
    )


def _alarms() -> None:
    op.create_table(
        "alarms",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("feed", sa.String(64)),
        sa.Column("site", sa.String(63)),
        *required(sa.Text, "subject", "sentence", "next_step"),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger, index=True),
        *optional(sa.BigInteger, "told_at", "end_told_at"),
        sa.Column("severity", sa.String(16), nullable=False, server_default="warning"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "silences",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("until", sa.BigInteger, nullable=False),
        sa.Column("by", sa.String(80), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("kind", sa.String(16)),
        sa.Column("feed", sa.String(64)),
        sa.Column("site", sa.String(63)),
        sa.Column("begins", sa.BigInteger),
        sa.Column("alarm_key", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "objectives",
        sa.Column("feed", sa.String(64), of("feeds.name"), primary_key=True),
        sa.Column("site", sa.String(63), of("sites.name"), primary_key=True, index=True),
        sa.Column("objective_ms", sa.Float, nullable=False),
        *optional(sa.Float, "quantile", "minutes"),
    )


def _receivers() -> None:
    op.create_table(
        "alarm_receivers",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        *required(sa.JSON, "kinds", "feeds", "sites"),
        sa.Column("severities", sa.JSON, nullable=False, server_default=_SEVERITIES),
    )
    op.create_table(
        "site_receivers",
        sa.Column("site", sa.String(63), of("sites.name"), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        *required(sa.JSON, "kinds", "feeds"),
        sa.Column("severities", sa.JSON, nullable=False, server_default=_SEVERITIES),
    )


def _processes() -> None:
    op.create_table(
        "holders",
        sa.Column("role", sa.String(32), primary_key=True),
        sa.Column("token", sa.String(32), nullable=False),
        sa.Column("writes", sa.BigInteger, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "senders",
        sa.Column("name", sa.String(63), primary_key=True),
        *required(sa.Text, "address", "public_key"),
        *optional(sa.Text, "certificate", "authority"),
        sa.Column("beats", sa.BigInteger, nullable=False),
        sa.Column("load_bps", sa.Float, nullable=False),
        sa.Column("draining", sa.Boolean, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "assignments",
        sa.Column("feed", sa.String(64), of("feeds.name"), primary_key=True),
        sa.Column("site", sa.String(63), of("sites.name"), primary_key=True, index=True),
        sa.Column("sender", sa.String(63), nullable=False),
    )
    key = sa.Column("number", sa.BigInteger, primary_key=True)
    op.create_table("placements", key, *required(sa.BigInteger, "version"))
    op.create_table(
        "node_clocks",
        sa.Column("name", sa.String(63), primary_key=True),
        *required(sa.BigInteger, "ahead_us", "bound_us", "compared_at"),
    )


def _partition() -> None:
    """Adds a partition for rows outside all others. Packed values are compressed, so the server need not try."""
    for table in ("exceptions", "latency_sheets"):
        op.execute(f"CREATE TABLE {table}_rest PARTITION OF {table} DEFAULT")
    for table in ("latency_minutes", "latency_sheets", "latency_sheets_rest"):
        op.execute(f"ALTER TABLE {table} ALTER COLUMN packed SET STORAGE EXTERNAL")


def _on_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"


_SEVERITIES = '["critical", "warning", "information"]'
