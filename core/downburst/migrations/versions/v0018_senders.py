"""Nodes that send for a hub, and what each of them serves."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "senders",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("certificate", sa.Text(), nullable=True),
        sa.Column("authority", sa.Text(), nullable=True),
        sa.Column("beats", sa.BigInteger(), nullable=False),
        sa.Column("load_bps", sa.Float(), nullable=False),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_senders")),
    )
    op.create_table(
        "assignments",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("sender", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("feed", "site", name=op.f("pk_assignments")),
        sa.ForeignKeyConstraint(["feed"], ["feeds.name"], name=op.f("fk_assignments_feed_feeds"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["site"], ["sites.name"], name=op.f("fk_assignments_site_sites"), ondelete="CASCADE"),
    )
    op.create_index(op.f("ix_assignments_site"), "assignments", ["site"])
    op.create_table(
        "placements",
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_placements")),
    )
    op.create_table(
        "node_clocks",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("ahead_us", sa.BigInteger(), nullable=False),
        sa.Column("bound_us", sa.BigInteger(), nullable=False),
        sa.Column("compared_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_node_clocks")),
    )


def downgrade() -> None:
    """Back."""
    op.drop_table("node_clocks")
    op.drop_table("placements")
    op.drop_table("assignments")
    op.drop_table("senders")
