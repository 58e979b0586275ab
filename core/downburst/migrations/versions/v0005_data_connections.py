"""A site's number of data connections."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("sites", sa.Column("data_connections", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Back."""
    op.drop_column("sites", "data_connections")
