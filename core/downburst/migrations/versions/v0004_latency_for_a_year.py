"""Latency by the minute for a year: hours packed, days merged. What was lost, by site and time."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    for name, time in (("sketch_hours", "hour"), ("sketch_days", "day")):
        op.create_table(
            name,
            sa.Column("feed", sa.String(length=64), nullable=False),
            sa.Column(time, sa.Integer(), autoincrement=False, nullable=False),
            sa.Column("site", sa.String(length=63), nullable=False),
            sa.Column("transport", sa.String(length=32), nullable=False),
            sa.Column("kind", sa.String(length=16), nullable=False),
            sa.Column("packed", sa.LargeBinary(), nullable=False),
            sa.PrimaryKeyConstraint("feed", time, "site", "transport", "kind", name=op.f(f"pk_{name}")),
        )
        op.create_index(op.f(f"ix_{name}_{time}"), name, [time])
    op.create_index(op.f("ix_exceptions_at"), "exceptions", ["at"])
    op.create_index(op.f("ix_exceptions_site_at"), "exceptions", ["site", "at"])


def downgrade() -> None:
    """Back: the packed history goes."""
    op.drop_index(op.f("ix_exceptions_site_at"), "exceptions")
    op.drop_index(op.f("ix_exceptions_at"), "exceptions")
    for name in ("sketch_days", "sketch_hours"):
        op.drop_table(name)
