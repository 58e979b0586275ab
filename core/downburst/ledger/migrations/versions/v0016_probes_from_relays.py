"""Probes between a relay and a site."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    for table in ("probes", "probe_schedules"):
        op.add_column(table, sa.Column("relay", sa.Text))
