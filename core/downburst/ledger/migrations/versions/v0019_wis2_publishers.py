"""Publishers of WIS2, and the products that they announce; replays, logins and notifications of sources."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import of, optional, required

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("wis2_sources", sa.Column("replay_url", sa.String(500)))
    op.add_column("wis2_sources", sa.Column("logins", sa.JSON, nullable=False, server_default="[]"))
    op.add_column("wis2_holes", sa.Column("filled_by", sa.Text))
    op.add_column("wis2_holes", sa.Column("fault", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "wis2_publishers",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("feed", sa.String(64), of("feeds.name"), nullable=False, index=True),
        sa.Column("centre", sa.String(100), nullable=False),
        sa.Column("subtopic", sa.String(300), nullable=False),
        sa.Column("metadata_id", sa.String(200), nullable=False),
        *required(sa.JSON, "broker"),
        sa.Column("base_url", sa.String(300), nullable=False),
        *required(sa.Text, "pattern"),
        sa.Column("media_type", sa.String(100), nullable=False),
        *required(sa.Boolean, "by_heading", "republishes", "enabled"),
        *optional(sa.JSON, "dataset"),
        *required(sa.BigInteger, "created_at"),
    )
    op.create_table(
        "wis2_places",
        sa.Column("publisher", sa.String(63), of("wis2_publishers.name"), primary_key=True),
        sa.Column("epoch", sa.String(20), nullable=False),
        *required(sa.BigInteger, "sequence"),
    )
    op.create_table(
        "wis2_outgoing",
        sa.Column("publisher", sa.String(63), of("wis2_publishers.name"), primary_key=True),
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("epoch", sa.String(20), nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("data_id", sa.String(255), nullable=False),
        sa.Column("product_id", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("topic", sa.String(500), nullable=False),
        *required(sa.LargeBinary, "payload"),
        sa.Column("digest", sa.String(128), nullable=False),
        *required(sa.BigInteger, "size_bytes", "made_at"),
        sa.Column("step", sa.String(16), nullable=False),
        *optional(sa.BigInteger, "announced_at"),
        *required(sa.Text, "reason"),
    )
    op.create_index("ix_wis2_outgoing_step", "wis2_outgoing", ["publisher", "step"])
    op.create_index("ix_wis2_outgoing_data_id", "wis2_outgoing", ["publisher", "data_id"])
    op.create_index("ix_wis2_outgoing_sequence", "wis2_outgoing", ["publisher", "epoch", "sequence"])
    op.drop_index("ix_wis2_notices_state", "wis2_notices")
    op.create_index("ix_wis2_notices_state", "wis2_notices", ["state", "source", "centre", "received_at"])
