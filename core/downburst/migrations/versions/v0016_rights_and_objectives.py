"""What of a feed a site may take, objectives of single sites, windows of maintenance ahead, receivers of sites."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("sites", sa.Column("limits", sa.JSON(), nullable=True))
    op.add_column("silences", sa.Column("begins", sa.BigInteger(), nullable=True))
    op.create_table(
        "objectives",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("objective_ms", sa.Float(), nullable=False),
        sa.Column("quantile", sa.Float(), nullable=True),
        sa.Column("minutes", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("feed", "site", name=op.f("pk_objectives")),
        sa.ForeignKeyConstraint(["feed"], ["feeds.name"], name=op.f("fk_objectives_feed_feeds"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["site"], ["sites.name"], name=op.f("fk_objectives_site_sites"), ondelete="CASCADE"),
    )
    op.create_index(op.f("ix_objectives_site"), "objectives", ["site"])
    op.create_table(
        "site_receivers",
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("feeds", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("site", "name", name=op.f("pk_site_receivers")),
        sa.ForeignKeyConstraint(
            ["site"], ["sites.name"], name=op.f("fk_site_receivers_site_sites"), ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """Back."""
    op.drop_table("objectives")
    op.drop_table("site_receivers")
    op.drop_column("silences", "begins")
    op.drop_column("sites", "limits")
