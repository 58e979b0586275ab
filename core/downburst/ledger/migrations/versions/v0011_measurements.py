"""Measurements by other systems, and the test points that send them."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import NUMBER, of, optional, required

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "test_points",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("addresses", sa.JSON, nullable=False),
        sa.Column("site", sa.String(63), sa.ForeignKey("sites.name", ondelete="SET NULL"), index=True),
        sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "measurements",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("point", sa.String(63), of("test_points.name"), nullable=False),
        sa.Column("run", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("source", sa.String(253), nullable=False, index=True),
        sa.Column("destination", sa.String(253), nullable=False, index=True),
        *optional(sa.Float, "value"),
        sa.Column("unit", sa.String(8)),
        *optional(sa.Float, "error", "lost_share"),
        *required(sa.JSON, "more"),
        *required(sa.Text, "note", "refused"),
        sa.Index("ix_measurements_point_run_at", "point", "run", "at", unique=True),
        sqlite_autoincrement=True,
    )
