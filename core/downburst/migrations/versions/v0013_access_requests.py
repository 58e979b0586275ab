"""Sites that ask for access."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "access_requests",
        sa.Column("number", _Id, nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("multicast_interface", sa.Text(), nullable=False),
        sa.Column("access_rate_bps", sa.Float(), nullable=True),
        sa.Column("feeds", sa.JSON(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("peer", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("decided_by", sa.String(length=80), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_access_requests")),
        sa.UniqueConstraint("secret_sha256", name=op.f("uq_access_requests_secret_sha256")),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Back."""
    op.drop_table("access_requests")
