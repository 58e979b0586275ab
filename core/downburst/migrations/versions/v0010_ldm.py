"""LDM both ways: which feeds are whose feed types, sources, sites that keep their LDM, and who may push."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Forward."""
    op.add_column("feeds", sa.Column("ldm_feed_type", sa.Text(), nullable=True))
    op.add_column("feeds", sa.Column("ldm_pattern", sa.Text(), nullable=True))
    op.add_column("sites", sa.Column("ldm_host", sa.Text(), nullable=True))
    op.create_table(
        "ldm_sources",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("feeds", sa.Text(), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("upstreams", sa.JSON(), nullable=False),
        sa.Column("max_age_s", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_ldm_sources")),
    )
    op.create_table(
        "ldm_accepts",
        sa.Column("id", _Id, autoincrement=True, nullable=False),
        sa.Column("feeds", sa.Text(), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ldm_accepts")),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Back."""
    op.drop_table("ldm_accepts")
    op.drop_table("ldm_sources")
    op.drop_column("sites", "ldm_host")
    op.drop_column("feeds", "ldm_pattern")
    op.drop_column("feeds", "ldm_feed_type")
