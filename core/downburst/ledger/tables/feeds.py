"""Tables of feeds: their settings, traffic, plans and legs."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from downburst.ledger.tables.base import NUMBER, Instant, metadata

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
    Column("deadline_ms", BigInteger),
)


legs = Table(
    "legs",
    metadata,
    Column("leg", NUMBER, primary_key=True, autoincrement=True),
    Column("feed", String(64), nullable=False),
    # A leg's number identifies keys and packet numbers at sites, so numbers are never reused.
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


egress_quarters = Table(
    "egress_quarters",
    metadata,
    # The first minute of a quarter hour.
    Column("minute", Integer, primary_key=True, autoincrement=False),
    Column("egress_bytes", BigInteger, nullable=False),
    Column("unicast_equivalent_bytes", BigInteger, nullable=False),
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
