"""The trains of products that circuits were ordered for."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("demand_orders", sa.Column("train_at", sa.BigInteger))
