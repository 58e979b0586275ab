"""The records of feeds with a deadline, by site and second."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import optional, required

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "feed_seconds",
        sa.Column("feed", sa.String(64), primary_key=True),
        sa.Column("site", sa.String(63), primary_key=True),
        sa.Column("second", sa.BigInteger, primary_key=True, autoincrement=False),
        *required(sa.BigInteger, "stored", "late_at_hub", "late_at_site", "lost", "reordered"),
        *optional(sa.BigInteger, "jitter_us"),
        *optional(sa.JSON, "delays"),
    )
    op.create_index("ix_feed_seconds_second", "feed_seconds", ["second"])
