"""Repair between sites: the exchanges of sites, and the bytes that siblings gave."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import of, optional, required

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "sibling_exchanges",
        sa.Column("site", sa.String(63), of("sites.name"), primary_key=True),
        *optional(sa.Text, "address"),
        *required(sa.BigInteger, "upload_bytes_per_second", "upload_bytes_per_day"),
        *required(sa.Text, "set_by"),
        *required(sa.BigInteger, "set_at"),
    )
    op.create_table(
        "sibling_savings",
        sa.Column("site", sa.String(63), of("sites.name"), primary_key=True),
        sa.Column("feed", sa.String(64), of("feeds.name"), primary_key=True, index=True),
        *required(sa.BigInteger, "products", "bytes"),
    )
