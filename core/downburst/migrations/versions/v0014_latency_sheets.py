"""Latencies of all sites of a feed in one value, by the minute and merged over longer spans; arrivals by the hour."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward. What the tables of before hold is brought over by the running hub, which reads both meanwhile."""
    op.create_table(
        "latency_minutes",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("minute", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("feed", "kind", "minute", name=op.f("pk_latency_minutes")),
    )
    op.create_index(op.f("ix_latency_minutes_minute"), "latency_minutes", ["minute"])
    op.create_table(
        "latency_sheets",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("minute", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("feed", "kind", "step", "minute", name=op.f("pk_latency_sheets")),
        postgresql_partition_by="RANGE (minute)",
    )
    op.create_index(op.f("ix_latency_sheets_step_minute"), "latency_sheets", ["step", "minute"])
    op.create_table(
        "traffic_hours",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("hour", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("products", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("feed", "hour", name=op.f("pk_traffic_hours")),
    )
    op.create_index(op.f("ix_traffic_hours_hour"), "traffic_hours", ["hour"])
    op.execute(
        "INSERT INTO traffic_hours (feed, hour, products, bytes) "
        "SELECT feed, minute / 60, SUM(products), SUM(bytes) FROM traffic_minutes GROUP BY feed, minute / 60"
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE TABLE latency_sheets_rest PARTITION OF latency_sheets DEFAULT")
        for table in ("latency_minutes", "latency_sheets", "latency_sheets_rest"):
            # It is compressed already; the server need not try.
            op.execute(f"ALTER TABLE {table} ALTER COLUMN packed SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Back: what was measured since goes."""
    op.drop_table("traffic_hours")
    op.drop_table("latency_sheets")
    op.drop_table("latency_minutes")
