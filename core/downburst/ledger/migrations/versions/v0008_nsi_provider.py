"""The hub as an NSI provider: connections of requesters, their correlation ids, and the replies to them."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import NUMBER, keys, of, required

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "nsi_connections",
        *keys(connection_id=64),
        sa.Column("subject", sa.Text, nullable=False, index=True),
        sa.Column("ended_at", sa.BigInteger, index=True),
        *required(sa.JSON, "record"),
    )
    op.create_table(
        "nsi_correlations",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("subject", sa.Text, nullable=False, index=True),
        sa.Column("correlation_id", sa.String(64), nullable=False, index=True),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "nsi_replies",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("connection_id", sa.String(64), of("nsi_connections.connection_id"), nullable=False, index=True),
        *required(sa.Boolean, "is_notice"),
        sa.Column("reply_to", sa.Text),
        *required(sa.BigInteger, "tries", "at"),
        *required(sa.JSON, "record"),
        sqlite_autoincrement=True,
    )
