"""TCP profiles."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import optional, required

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "tcp_profiles",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("prefix", sa.String(64), nullable=False, unique=True),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("knobs", sa.JSON, nullable=False),
        *optional(sa.JSON, "learnt", "trial"),
        *required(sa.BigInteger, "created_at", "changed_at"),
    )
