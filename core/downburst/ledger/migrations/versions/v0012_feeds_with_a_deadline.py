"""Feeds with a deadline, and the counts of products that missed it."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("feeds", sa.Column("deadline_ms", sa.BigInteger))
    for name in ("late_at_hub", "late_at_site"):
        op.add_column("settled", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
