"""The ledger's tables, in the common subset of SQLite and PostgreSQL; instants are whole microseconds since 1970."""

from datetime import datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

from downburst.clock import from_us, to_us


class Instant(TypeDecorator[datetime]):
    """An aware instant, kept as microseconds since 1970 so that both databases keep all of it."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """To the database."""
        del dialect
        return None if value is None else to_us(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        """From the database."""
        del dialect
        return None if value is None else from_us(value)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only for a plain INTEGER key.
NUMBER = BigInteger().with_variant(Integer(), "sqlite")

holders = Table(
    "holders",
    metadata,
    Column("role", String(32), primary_key=True),
    # Of the process that writes the ledger in this role, and how often it did.
    Column("token", String(32), nullable=False),
    Column("writes", BigInteger, nullable=False),
    Column("host", Text, nullable=False),
    Column("at", Instant, nullable=False),
)

feeds = Table(
    "feeds",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("feed_class", String(16), nullable=False),
    Column("retention_hours", Float, nullable=False),
    Column("retention_bytes", BigInteger, nullable=False),
    Column("objective_ms", Float, nullable=False),
    Column("duplicate_rule", String(32), nullable=False),
    Column("durability", String(16), nullable=False),
    Column("max_product_bytes", BigInteger, nullable=False),
    Column("unicast_leg", BigInteger, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("ldm_feed_type", Text),
    Column("ldm_pattern", Text),
)

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
    # A site remembers by the number what it was given once more, so none is given twice.
    sqlite_autoincrement=True,
)

upstreams = Table(
    "upstreams",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("address", Text, nullable=False),
    # Shown once; afterwards the node's own credential counts.
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

legs = Table(
    "legs",
    metadata,
    Column("leg", NUMBER, primary_key=True, autoincrement=True),
    Column("feed", String(64), nullable=False),
    # A leg's number stands for keys and packet numbers at sites, so none is given twice.
    sqlite_autoincrement=True,
)

plans = Table(
    "plans",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("made_at", Instant, nullable=False),
    Column("reason", Text, nullable=False),
    Column("pinned", Boolean, nullable=False),
    Column("legs", JSON, nullable=False),
    Column("candidates", JSON, nullable=False),
    Column("figures", JSON, nullable=False),
)

pins = Table(
    "pins",
    metadata,
    Column("feed", ForeignKey("feeds.name", ondelete="CASCADE"), primary_key=True),
    Column("transport", String(32), nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Instant, nullable=False),
)

leg_counters = Table(
    "leg_counters",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("leg", BigInteger, primary_key=True, autoincrement=False),
    Column("transport", String(32), nullable=False),
    Column("sites", Integer, nullable=False),
    Column("products", BigInteger, nullable=False),
    Column("product_bytes", BigInteger, nullable=False),
    Column("egress_bytes", BigInteger, nullable=False),
    Column("repair_bytes", BigInteger, nullable=False),
    Column("control_bytes", BigInteger, nullable=False),
    Column("unicast_equivalent_bytes", BigInteger, nullable=False),
)

latency_minutes = Table(
    "latency_minutes",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("minute", Integer, primary_key=True, autoincrement=False),
    Column("packed", LargeBinary, nullable=False),
    Index(None, "minute"),
)

latency_sheets = Table(
    "latency_sheets",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("kind", String(16), primary_key=True),
    # Minutes that each sketch stands for; those of one minute lie by the hour.
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("minute", Integer, primary_key=True, autoincrement=False),
    Column("packed", LargeBinary, nullable=False),
    Index(None, "step", "minute"),
)

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

traffic_minutes = Table(
    "traffic_minutes",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("minute", Integer, primary_key=True, autoincrement=False),
    Column("products", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("peak_1s_bytes", BigInteger, nullable=False),
)

traffic_hours = Table(
    "traffic_hours",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column("products", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Index(None, "hour"),
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

circuit_ports = Table(
    "circuit_ports",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("rate_bps", BigInteger, nullable=False),
    Column("port_rate_bps", BigInteger),
    Column("site", String(63)),
    Column("interface", Text, nullable=False),
    Column("underlay", Text, nullable=False),
    Column("stp", Text, nullable=False),
    Column("first_vlan", Integer),
    Column("last_vlan", Integer),
    Column("created_at", Instant, nullable=False),
)

circuits = Table(
    "circuits",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("request_id", String(100), nullable=False, unique=True),
    Column("asked_sha256", String(64), nullable=False),
    Column("rate_out_bps", BigInteger, nullable=False),
    Column("rate_in_bps", BigInteger, nullable=False),
    Column("begin", Instant, nullable=False),
    Column("end", Instant),
    Column("driver", String(16), nullable=False),
    Column("replication", String(16), nullable=False),
    Column("group", Text),
    Column("cap", String(8), nullable=False),
    Column("shaped_share", Float, nullable=False),
    Column("burst_bytes", Integer),
    Column("description", Text, nullable=False),
    Column("ticket", Text, nullable=False),
    Column("requested_by", Text, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("reason", Text, nullable=False),
    Column("since", Instant, nullable=False),
    Column("created_at", Instant, nullable=False),
    sqlite_autoincrement=True,
)

circuit_ends = Table(
    "circuit_ends",
    metadata,
    Column("circuit", ForeignKey("circuits.number", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("port", String(63), nullable=False, index=True),
    Column("site", String(63), index=True),
    Column("first_vlan", Integer),
    Column("last_vlan", Integer),
    Column("vlan", Integer),
    Column("address", Text),
)

circuit_events = Table(
    "circuit_events",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("circuit", ForeignKey("circuits.number", ondelete="CASCADE"), nullable=False, index=True),
    Column("at", Instant, nullable=False),
    Column("event", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("sentence", Text, nullable=False),
    Column("step", String(16), nullable=False),
    Column("hop", Text, nullable=False),
    Column("remedy", Text, nullable=False),
    Column("by", Text, nullable=False),
    sqlite_autoincrement=True,
)

circuit_measurements = Table(
    "circuit_measurements",
    metadata,
    Column("circuit", ForeignKey("circuits.number", ondelete="CASCADE"), primary_key=True),
    Column("site", String(63), primary_key=True),
    Column("direction", String(8), primary_key=True),
    Column("at", Instant, nullable=False),
    Column("rate_bps", BigInteger, nullable=False),
    Column("reserved_bps", BigInteger, nullable=False),
    Column("loss_share", Float, nullable=False),
    Column("round_trip_us", BigInteger),
    Column("cause", String(32), nullable=False),
    Column("sentence", Text, nullable=False),
    Column("remedy", Text, nullable=False),
)
