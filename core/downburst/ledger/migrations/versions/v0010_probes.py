"""Probes of paths with their seconds, schedules and ceilings."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import NUMBER, of, optional, required

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "probes",
        sa.Column("id", NUMBER, primary_key=True),
        *_request(),
        *required(sa.BigInteger, "requested_at"),
        *optional(sa.BigInteger, "schedule"),
        sa.Column("state", sa.String(16), nullable=False, index=True),
        *required(sa.Text, "reason", "stop_by"),
        *required(sa.Integer, "attempts"),
        *optional(sa.BigInteger, "started_at", "ended_at"),
        *required(sa.BigInteger, "sent_bytes"),
        *required(sa.JSON, "circumstances", "gaps"),
        *optional(sa.JSON, "result"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "probe_seconds",
        sa.Column("probe", NUMBER, of("probes.id"), primary_key=True),
        sa.Column("minute", sa.Integer, primary_key=True, autoincrement=False),
        *required(sa.JSON, "seconds"),
    )
    op.create_table(
        "probe_schedules",
        sa.Column("id", NUMBER, primary_key=True),
        *_request(),
        *required(sa.Integer, "every_h", "first_hour", "end_hour"),
        *required(sa.BigInteger, "next_at", "created_at"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "probe_ceilings",
        sa.Column("site", sa.String(63), of("sites.name"), primary_key=True),
        sa.Column("side", sa.String(16), primary_key=True),
        *optional(sa.BigInteger, "rate_bps", "bytes_per_day"),
        *required(sa.Text, "set_by"),
        *required(sa.BigInteger, "set_at"),
    )


def _request() -> list[sa.Column[object]]:
    """The columns that probes and schedules share."""
    return [
        sa.Column("site", sa.String(63), of("sites.name"), nullable=False, index=True),
        *required(sa.String(16), "kind"),
        *required(sa.String(8), "direction"),
        *required(sa.JSON, "steps"),
        *required(sa.Integer, "packet_bytes"),
        *required(sa.Float, "patience_s"),
        *required(sa.Text, "requested_by"),
    ]
