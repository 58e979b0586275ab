"""What the hub sent in each quarter hour."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import required

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "egress_quarters",
        sa.Column("minute", sa.Integer, primary_key=True, autoincrement=False),
        *required(sa.BigInteger, "egress_bytes", "unicast_equivalent_bytes"),
    )
