"""Tables of circuits and their ports."""

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
    Column("provider", String(63)),
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
    Column("held_until", Instant),
    Column("creation", String(16), nullable=False, server_default="automatic"),
    Column("include", JSON, nullable=False, server_default="[]"),
    Column("exclude", JSON, nullable=False, server_default="[]"),
    Column("path_order", String(16), nullable=False, server_default="shortest"),
    Column("overridden", String(16)),
    Column("override_reason", Text),
    Column("override_by", Text),
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


circuit_hops = Table(
    "circuit_hops",
    metadata,
    Column("circuit", ForeignKey("circuits.number", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("link", String(63), nullable=False),
    Column("forward", Boolean, nullable=False),
    Column("tag", Integer),
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
