"""Circuits on demand: offers, records of providers, orders, and reservations at providers."""

import sqlalchemy as sa
from alembic import op

from downburst.ledger.migrations.columns import NUMBER, keys, of, optional, required

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("circuits", sa.Column("provider", sa.String(63)))
    op.add_column("site_ways", sa.Column("over", sa.JSON(none_as_null=True)))
    op.create_table(
        "circuit_providers",
        *keys(name=63),
        *required(sa.Text, "url", "provider_nsa", "requester_nsa"),
        *required(sa.String(16), "dialect"),
        *optional(sa.Text, "certificate", "key", "authorities", "reply_to"),
        *required(sa.Text, "service_type"),
        *required(sa.BigInteger, "created_at"),
    )
    op.create_table(
        "circuit_offers",
        *keys(name=63),
        sa.Column("provider", sa.String(63), nullable=False, index=True),
        *required(sa.String(63), "hub_port"),
        *required(sa.JSON, "ports", "rates_bps"),
        *optional(sa.Float, "price"),
        *required(sa.Float, "setup_s", "least_hold_s"),
        *optional(sa.Float, "circuit_hours"),
        *optional(sa.Integer, "orders"),
        *required(sa.BigInteger, "created_at"),
    )
    op.create_table(
        "demand_orders",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("offer", sa.String(63), nullable=False, index=True),
        sa.Column("feed", sa.String(63), nullable=False, index=True),
        *required(sa.String(63), "site"),
        *required(sa.BigInteger, "rate_bps"),
        *required(sa.Text, "reason"),
        sa.Column("ordered_at", sa.BigInteger, nullable=False, index=True),
        *required(sa.BigInteger, "until"),
        sa.Column("step", sa.String(16), nullable=False, index=True),
        *optional(sa.BigInteger, "circuit", "up_at", "released_at", "ended_at"),
        *required(sa.Text, "outcome"),
        *optional(sa.Float, "used_share"),
        *optional(sa.BigInteger, "products"),
        *optional(sa.Float, "gained_ms"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "nsi_orders",
        sa.Column("circuit", NUMBER, of("circuits.number"), primary_key=True, autoincrement=False),
        sa.Column("provider", sa.String(63), nullable=False, index=True),
        *required(sa.JSON, "record"),
    )
