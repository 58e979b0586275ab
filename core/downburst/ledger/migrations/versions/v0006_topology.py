"""The topology of the network between the hub and its sites, and the paths of circuits through it."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import NUMBER, of, optional, required

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "topology_elements",
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(63), primary_key=True),
        *required(sa.JSON, "properties"),
    )
    op.create_table(
        "circuit_hops",
        sa.Column("circuit", NUMBER, of("circuits.number"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        *required(sa.String(63), "link"),
        *required(sa.Boolean, "forward"),
        *optional(sa.Integer, "tag"),
    )
