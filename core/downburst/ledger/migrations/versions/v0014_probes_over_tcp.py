"""Probes over TCP: their transport, congestion control and trials."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    for table in ("probes", "probe_schedules"):
        op.add_column(table, sa.Column("transport", sa.String(8), nullable=False, server_default="udp"))
        op.add_column(table, sa.Column("congestion", sa.String(16)))
        op.add_column(table, sa.Column("trials", sa.JSON, nullable=False, server_default="[]"))
