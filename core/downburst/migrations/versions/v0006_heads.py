"""The highest number that each feed's log is known to have given."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "heads",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("epoch", sa.String(length=20), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("feed", "epoch", name=op.f("pk_heads")),
    )


def downgrade() -> None:
    """Back."""
    op.drop_table("heads")
