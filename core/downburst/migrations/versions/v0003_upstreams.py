"""Hubs that this hub is a site of."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "upstreams",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("feeds", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_upstreams")),
    )


def downgrade() -> None:
    """Back."""
    op.drop_table("upstreams")
