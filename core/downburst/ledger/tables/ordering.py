"""Tables of circuits on demand: offers, records of providers, orders, and reservations at providers."""

from sqlalchemy import JSON, BigInteger, Column, Float, ForeignKey, Integer, String, Table, Text

from downburst.ledger.tables.base import NUMBER, Instant, metadata

circuit_providers = Table(
    "circuit_providers",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("url", Text, nullable=False),
    Column("provider_nsa", Text, nullable=False),
    Column("requester_nsa", Text, nullable=False),
    Column("dialect", String(16), nullable=False),
    Column("certificate", Text),
    Column("key", Text),
    Column("authorities", Text),
    Column("reply_to", Text),
    Column("service_type", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
)


circuit_offers = Table(
    "circuit_offers",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("provider", String(63), nullable=False, index=True),
    Column("hub_port", String(63), nullable=False),
    Column("ports", JSON, nullable=False),
    Column("rates_bps", JSON, nullable=False),
    Column("price", Float),
    Column("setup_s", Float, nullable=False),
    Column("least_hold_s", Float, nullable=False),
    Column("circuit_hours", Float),
    Column("orders", Integer),
    Column("created_at", Instant, nullable=False),
)


demand_orders = Table(
    "demand_orders",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("offer", String(63), nullable=False, index=True),
    Column("feed", String(63), nullable=False, index=True),
    Column("site", String(63), nullable=False),
    Column("rate_bps", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("ordered_at", Instant, nullable=False, index=True),
    Column("until", Instant, nullable=False),
    Column("step", String(16), nullable=False, index=True),
    Column("circuit", BigInteger),
    Column("up_at", Instant),
    Column("released_at", Instant),
    Column("ended_at", Instant),
    Column("train_at", Instant),
    Column("outcome", Text, nullable=False),
    Column("used_share", Float),
    Column("products", BigInteger),
    Column("gained_ms", Float),
    sqlite_autoincrement=True,
)


nsi_orders = Table(
    "nsi_orders",
    metadata,
    Column("circuit", ForeignKey("circuits.number", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("provider", String(63), nullable=False, index=True),
    Column("record", JSON, nullable=False),
)
