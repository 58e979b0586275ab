"""Ports of the hub's senders, where circuits may begin as well."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("circuit_ports", sa.Column("sender", sa.String(63)))
