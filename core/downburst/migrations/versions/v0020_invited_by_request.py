"""A request for access invites the user that its approval made, and no other of that name."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    given = _numbers_given()
    with op.batch_alter_table("access_requests", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(sa.Column("invites", sa.String(length=64), nullable=True))
        name = op.f("fk_access_requests_invites_users")
        batch.create_foreign_key(name, "users", ["invites"], ["name"], ondelete="SET NULL")
    _give_no_number_again(given)
    # Users that an approval made and that have not come in yet; one made by hand is younger than its request.
    op.execute(
        "UPDATE access_requests SET invites = (SELECT users.name FROM users WHERE users.site = access_requests.site "
        "AND users.name = substr('admin@' || access_requests.site, 1, 64) "
        "AND users.created_at <= access_requests.decided_at) WHERE state = 'approved'"
    )


def downgrade() -> None:
    """Back."""
    given = _numbers_given()
    with op.batch_alter_table("access_requests", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.drop_constraint(op.f("fk_access_requests_invites_users"), type_="foreignkey")
        batch.drop_column("invites")
    _give_no_number_again(given)


def _numbers_given() -> int | None:
    """The highest number that SQLite gave; a table that is made anew forgets those of rows that are gone."""
    if op.get_bind().dialect.name != "sqlite":
        return None
    found = op.get_bind().scalar(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'access_requests'"))
    return None if found is None else int(found)


def _give_no_number_again(given: int | None) -> None:
    if given is None:
        return
    row = {"given": given}
    op.get_bind().execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'access_requests'"))
    op.get_bind().execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('access_requests', :given)"), row)
