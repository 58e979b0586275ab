"""The life of reservations: holds, creation by hand, overrides, and the wishes for their paths."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward; circuits of before are automatic, and their paths were the shortest."""
    for column in (
        sa.Column("held_until", sa.BigInteger),
        sa.Column("creation", sa.String(16), nullable=False, server_default="automatic"),
        sa.Column("include", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("exclude", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("path_order", sa.String(16), nullable=False, server_default="shortest"),
        sa.Column("overridden", sa.String(16)),
        sa.Column("override_reason", sa.Text),
        sa.Column("override_by", sa.Text),
    ):
        op.add_column("circuits", column)
