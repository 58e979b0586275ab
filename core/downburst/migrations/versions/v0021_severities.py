"""Alarms have a severity, receivers say of which they hear, and a silence may be about one alarm alone."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("alarms", sa.Column("severity", sa.String(length=16), nullable=False, server_default="warning"))
    for severity, kinds in (("critical", CRITICAL), ("information", ("prediction",))):
        of_kinds = sa.text("UPDATE alarms SET severity = :severity WHERE kind IN :kinds").bindparams(
            sa.bindparam("kinds", expanding=True)
        )
        op.get_bind().execute(of_kinds, {"severity": severity, "kinds": list(kinds)})
    for table in ("alarm_receivers", "site_receivers"):
        op.add_column(table, sa.Column("severities", sa.JSON(), nullable=False, server_default=ALL))
        # A receiver that names kinds goes on to hear all of them, any other one no information.
        found = sa.table(table, sa.column("kinds", sa.JSON()), sa.column("severities", sa.JSON()))
        told = sa.update(found).where(sa.cast(found.c.kinds, sa.Text()) == "[]")
        op.get_bind().execute(told.values(severities=["critical", "warning"]))
    op.add_column("silences", sa.Column("alarm_key", sa.Text(), nullable=True))


def downgrade() -> None:
    """Back."""
    for table, column in ADDED:
        op.drop_column(table, column)


ALL = '["critical", "warning", "information"]'
CRITICAL = ("site-down", "site-disk", "heartbeat", "damaged-data")
"""As the kinds were graded when alarms got a severity."""
ADDED = (
    ("alarms", "severity"),
    ("alarm_receivers", "severities"),
    ("site_receivers", "severities"),
    ("silences", "alarm_key"),
)
