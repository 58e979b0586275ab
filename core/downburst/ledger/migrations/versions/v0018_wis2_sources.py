"""Sources of WIS2: their notifications, the accounts of centres, and holes."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import NUMBER, of, optional, required

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "wis2_sources",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("feed", sa.String(64), of("feeds.name"), nullable=False, index=True),
        *required(sa.JSON, "brokers", "filters", "former_filters"),
        *required(sa.Boolean, "takes_recommended", "may_ask_private", "enabled"),
        *optional(sa.BigInteger, "bytes_per_day"),
        *required(sa.BigInteger, "created_at"),
    )
    op.create_table(
        "wis2_notices",
        sa.Column("source", sa.String(63), of("wis2_sources.name"), primary_key=True),
        sa.Column("data_id", sa.String(255), primary_key=True),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("digest", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False, index=True),
        sa.Column("topic", sa.String(500), nullable=False),
        sa.Column("centre", sa.String(100), nullable=False),
        *required(sa.BigInteger, "announced_bytes"),
        *required(sa.LargeBinary, "payload"),
        *required(sa.BigInteger, "published_at", "received_at"),
        *required(sa.Integer, "attempts"),
        *required(sa.Text, "reason"),
        *optional(sa.BigInteger, "sequence", "settled_at"),
    )
    op.create_table(
        "wis2_days",
        sa.Column("source", sa.String(63), of("wis2_sources.name"), primary_key=True),
        sa.Column("centre", sa.String(100), primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True),
        *required(sa.BigInteger, "products", "bytes", "copies", "refused", "failed"),
    )
    op.create_table(
        "wis2_holes",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("source", sa.String(63), of("wis2_sources.name"), nullable=False, index=True),
        *required(sa.Text, "broker", "reason"),
        *required(sa.BigInteger, "from_at", "to_at"),
        *optional(sa.BigInteger, "filled_at"),
        sqlite_autoincrement=True,
    )
