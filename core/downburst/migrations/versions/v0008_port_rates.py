"""How fast a port itself is, beside what circuits may reserve of it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("circuit_ports", sa.Column("port_rate_bps", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Back."""
    op.drop_column("circuit_ports", "port_rate_bps")
