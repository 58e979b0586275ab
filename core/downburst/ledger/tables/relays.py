"""Tables of relays: the sites behind them, the ways of sites, the log of tunnels; and of siblings."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, ForeignKey, String, Table, Text

from downburst.ledger.tables.base import NUMBER, Instant, metadata

relays = Table(
    "relays",
    metadata,
    Column("name", ForeignKey("sites.name", ondelete="CASCADE"), primary_key=True),
    Column("address", Text),
    Column("fan_out", String(16)),
    Column("created_at", Instant, nullable=False),
)


relay_sites = Table(
    "relay_sites",
    metadata,
    Column("relay", ForeignKey("relays.name", ondelete="CASCADE"), primary_key=True),
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), primary_key=True, index=True),
)


site_ways = Table(
    "site_ways",
    metadata,
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), primary_key=True),
    Column("chain", JSON, nullable=False),
    Column("reason", Text, nullable=False),
    Column("predicted_bps", BigInteger),
    Column("direct_bps", BigInteger),
    Column("measured_bps", BigInteger),
    Column("decided_at", Instant, nullable=False),
    Column("over", JSON(none_as_null=True)),
)


relay_log = Table(
    "relay_log",
    metadata,
    Column("id", NUMBER, primary_key=True, autoincrement=True),
    Column("relay", ForeignKey("relays.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("at", Instant, nullable=False),
    Column("site", String(63)),
    Column("site_side", Text, nullable=False),
    Column("hub_side", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("bytes_from_hub", BigInteger, nullable=False),
    Column("bytes_from_site", BigInteger, nullable=False),
    Column("rate_from_hub_bps", BigInteger, nullable=False),
    Column("near", JSON, nullable=False),
    Column("onward", JSON, nullable=False),
    Column("ended", Boolean, nullable=False),
    sqlite_autoincrement=True,
)


sibling_exchanges = Table(
    "sibling_exchanges",
    metadata,
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), primary_key=True),
    Column("address", Text),
    Column("upload_bytes_per_second", BigInteger, nullable=False),
    Column("upload_bytes_per_day", BigInteger, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("set_at", Instant, nullable=False),
)


sibling_savings = Table(
    "sibling_savings",
    metadata,
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), primary_key=True),
    Column("feed", ForeignKey("feeds.name", ondelete="CASCADE"), primary_key=True, index=True),
    Column("products", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)
