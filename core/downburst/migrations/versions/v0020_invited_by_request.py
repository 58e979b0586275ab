"""A request for access invites the user that its approval made, and no other of that name."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    # Without a batch, which would make the table anew: SQLite takes a reference that may be null.
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "ALTER TABLE access_requests ADD COLUMN invites VARCHAR(64) REFERENCES users (name) ON DELETE SET NULL"
        )
    else:
        op.add_column("access_requests", sa.Column("invites", sa.String(length=64), nullable=True))
        name = op.f("fk_access_requests_invites_users")
        op.create_foreign_key(name, "access_requests", "users", ["invites"], ["name"], ondelete="SET NULL")
    # Users that an approval made and that have not come in yet; one made by hand is younger than its request.
    op.execute(
        "UPDATE access_requests SET invites = (SELECT users.name FROM users WHERE users.site = access_requests.site "
        "AND users.name = substr('admin@' || access_requests.site, 1, 64) "
        "AND users.created_at <= access_requests.decided_at) WHERE state = 'approved'"
    )


def downgrade() -> None:
    """Back."""
    with op.batch_alter_table("access_requests", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.drop_column("invites")
