"""Credentials take each other's place while sessions go on."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("credentials", sa.Column("replaces", sa.String(length=64), nullable=True))
    op.add_column("credentials", sa.Column("replaced_at", sa.BigInteger(), nullable=True))
    op.add_column("credentials", sa.Column("asked_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Back."""
    for column in ("asked_at", "replaced_at", "replaces"):
        op.drop_column("credentials", column)
