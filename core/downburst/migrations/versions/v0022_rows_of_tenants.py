"""Keys of requests have a tenant, and changes are found by their authors: both are counted before one is added."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("answers", sa.Column("tenant", sa.Text(), nullable=False, server_default=""))
    op.create_index(op.f("ix_answers_tenant"), "answers", ["tenant"])
    op.create_index(op.f("ix_audit_who_at"), "audit", ["who", "at"])


def downgrade() -> None:
    """Back."""
    op.drop_index(op.f("ix_audit_who_at"), "audit")
    op.drop_index(op.f("ix_answers_tenant"), "answers")
    op.drop_column("answers", "tenant")
