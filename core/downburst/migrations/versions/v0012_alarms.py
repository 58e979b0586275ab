"""Alarms, whom to tell of them, and what not to tell for a while."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "alarms",
        sa.Column("number", _Id, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("feed", sa.String(length=64), nullable=True),
        sa.Column("site", sa.String(length=63), nullable=True),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("next_step", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("told_at", sa.BigInteger(), nullable=True),
        sa.Column("end_told_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_alarms")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_alarms_ended_at"), "alarms", ["ended_at"])
    op.create_table(
        "silences",
        sa.Column("number", _Id, nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.String(length=80), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=True),
        sa.Column("feed", sa.String(length=64), nullable=True),
        sa.Column("site", sa.String(length=63), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_silences")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alarm_receivers",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("feeds", sa.JSON(), nullable=False),
        sa.Column("sites", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_alarm_receivers")),
    )


def downgrade() -> None:
    """Back."""
    for table in ("alarm_receivers", "silences", "alarms"):
        op.drop_table(table)
