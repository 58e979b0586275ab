"""Resends; order, age and start of subscriptions."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("subscriptions", sa.Column("in_order", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("subscriptions", sa.Column("hold_s", sa.Float(), nullable=False, server_default="2"))
    op.add_column("subscriptions", sa.Column("max_age_s", sa.Float(), nullable=True))
    op.add_column("subscriptions", sa.Column("start_at", sa.BigInteger(), nullable=True))
    op.create_table(
        "resends",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("from_at", sa.BigInteger(), nullable=False),
        sa.Column("to_at", sa.BigInteger(), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("not_pattern", sa.Text(), nullable=True),
        sa.Column("had", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("products", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("expired", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["feed"], ["feeds.name"], name=op.f("fk_resends_feed_feeds"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["site"], ["sites.name"], name=op.f("fk_resends_site_sites"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resends")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_resends_feed"), "resends", ["feed"])
    op.create_index(op.f("ix_resends_site"), "resends", ["site"])
    op.create_index(op.f("ix_resends_state"), "resends", ["state"])


def downgrade() -> None:
    """Back."""
    op.drop_table("resends")
    for column in ("start_at", "max_age_s", "hold_s", "in_order"):
        op.drop_column("subscriptions", column)
