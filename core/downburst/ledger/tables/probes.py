"""Tables of probes: their seconds, schedules and ceilings."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, Float, ForeignKey, Integer, String, Table, Text

from downburst.ledger.tables.base import NUMBER, Instant, metadata


def _request() -> list[Column[object]]:
    """The columns of a request, which probes and schedules share."""
    return [
        Column("site", ForeignKey("sites.name", ondelete="CASCADE"), nullable=False, index=True),
        Column("kind", String(16), nullable=False),
        Column("direction", String(8), nullable=False),
        Column("steps", JSON, nullable=False),
        Column("packet_bytes", Integer, nullable=False),
        Column("patience_s", Float, nullable=False),
        Column("requested_by", Text, nullable=False),
        Column("transport", String(8), nullable=False),
        Column("congestion", String(16)),
        Column("trials", JSON, nullable=False),
        Column("relay", Text),
    ]


probes = Table(
    "probes",
    metadata,
    Column("id", NUMBER, primary_key=True, autoincrement=True),
    *_request(),
    Column("requested_at", Instant, nullable=False),
    Column("schedule", BigInteger),
    Column("state", String(16), nullable=False, index=True),
    Column("reason", Text, nullable=False),
    Column("stop_by", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    Column("sent_bytes", BigInteger, nullable=False),
    Column("circumstances", JSON, nullable=False),
    Column("gaps", JSON, nullable=False),
    Column("result", JSON(none_as_null=True)),
    Column("conclusive", Boolean, nullable=False),
    sqlite_autoincrement=True,
)


probe_seconds = Table(
    "probe_seconds",
    metadata,
    Column("probe", ForeignKey("probes.id", ondelete="CASCADE"), primary_key=True),
    Column("minute", Integer, primary_key=True, autoincrement=False),
    Column("seconds", JSON, nullable=False),
)


probe_schedules = Table(
    "probe_schedules",
    metadata,
    Column("id", NUMBER, primary_key=True, autoincrement=True),
    *_request(),
    Column("every_h", Integer, nullable=False),
    Column("first_hour", Integer, nullable=False),
    Column("end_hour", Integer, nullable=False),
    Column("next_at", Instant, nullable=False),
    Column("created_at", Instant, nullable=False),
    sqlite_autoincrement=True,
)


probe_ceilings = Table(
    "probe_ceilings",
    metadata,
    Column("site", ForeignKey("sites.name", ondelete="CASCADE"), primary_key=True),
    Column("side", String(16), primary_key=True),
    Column("rate_bps", BigInteger),
    Column("bytes_per_day", BigInteger),
    Column("set_by", Text, nullable=False),
    Column("set_at", Instant, nullable=False),
)
