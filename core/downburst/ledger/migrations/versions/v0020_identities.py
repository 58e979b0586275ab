"""Users who sign in at a provider of OpenID Connect: their issuer and subject."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("users", sa.Column("issuer", sa.String(500)))
    op.add_column("users", sa.Column("subject", sa.String(255)))
    op.create_index("ix_users_identity", "users", ["issuer", "subject"], unique=True)
