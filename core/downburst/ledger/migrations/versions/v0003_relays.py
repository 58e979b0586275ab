"""Relays, the sites behind them, the ways of sites, and the log of tunnels."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import NUMBER, of, optional, required

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "relays",
        sa.Column("name", sa.String(63), of("sites.name"), primary_key=True),
        *optional(sa.Text, "address"),
        *optional(sa.String(16), "fan_out"),
        *required(sa.BigInteger, "created_at"),
    )
    op.create_table(
        "relay_sites",
        sa.Column("relay", sa.String(63), of("relays.name"), primary_key=True),
        sa.Column("site", sa.String(63), of("sites.name"), primary_key=True, index=True),
    )
    op.create_table(
        "site_ways",
        sa.Column("site", sa.String(63), of("sites.name"), primary_key=True),
        *required(sa.JSON, "chain"),
        *required(sa.Text, "reason"),
        *optional(sa.BigInteger, "predicted_bps", "direct_bps", "measured_bps"),
        *required(sa.BigInteger, "decided_at"),
    )
    op.create_table(
        "relay_log",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("relay", sa.String(63), of("relays.name"), nullable=False, index=True),
        *required(sa.BigInteger, "at"),
        *optional(sa.String(63), "site"),
        *required(sa.Text, "site_side", "hub_side", "target"),
        *required(sa.Float, "seconds"),
        *required(sa.BigInteger, "bytes_from_hub", "bytes_from_site", "rate_from_hub_bps"),
        *required(sa.JSON, "near", "onward"),
        *required(sa.Boolean, "ended"),
        sqlite_autoincrement=True,
    )
