"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "batches",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("batch", sa.Text(), nullable=False),
        sa.Column("loaded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_batches")),
        sa.UniqueConstraint("batch", name=op.f("uq_batches_batch")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "exceptions",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("epoch", sa.String(length=20), nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("feed", "epoch", "sequence", "site", name=op.f("pk_exceptions")),
    )
    op.create_table(
        "faults",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("feed", sa.String(length=64), nullable=True),
        sa.Column("site", sa.String(length=63), nullable=True),
        sa.Column("next_step", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_faults")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "feeds",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("feed_class", sa.String(length=16), nullable=False),
        sa.Column("retention_hours", sa.Float(), nullable=False),
        sa.Column("retention_bytes", sa.BigInteger(), nullable=False),
        sa.Column("objective_ms", sa.Float(), nullable=False),
        sa.Column("duplicate_rule", sa.String(length=32), nullable=False),
        sa.Column("durability", sa.String(length=16), nullable=False),
        sa.Column("max_product_bytes", sa.BigInteger(), nullable=False),
        sa.Column("unicast_leg", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_feeds")),
    )
    op.create_table(
        "leg_counters",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("leg", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("transport", sa.String(length=32), nullable=False),
        sa.Column("sites", sa.Integer(), nullable=False),
        sa.Column("products", sa.BigInteger(), nullable=False),
        sa.Column("product_bytes", sa.BigInteger(), nullable=False),
        sa.Column("egress_bytes", sa.BigInteger(), nullable=False),
        sa.Column("repair_bytes", sa.BigInteger(), nullable=False),
        sa.Column("control_bytes", sa.BigInteger(), nullable=False),
        sa.Column("unicast_equivalent_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("feed", "version", "leg", name=op.f("pk_leg_counters")),
    )
    op.create_table(
        "legs",
        sa.Column("leg", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("leg", name=op.f("pk_legs")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "plans",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("legs", sa.JSON(), nullable=False),
        sa.Column("candidates", sa.JSON(), nullable=False),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("feed", "version", name=op.f("pk_plans")),
    )
    op.create_table(
        "settled",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("epoch", sa.String(length=20), nullable=False),
        sa.Column("settled_to", sa.BigInteger(), nullable=False),
        sa.Column("stored", sa.BigInteger(), nullable=False),
        sa.Column("stored_bytes", sa.BigInteger(), nullable=False),
        sa.Column("duplicates", sa.BigInteger(), nullable=False),
        sa.Column("rejected", sa.BigInteger(), nullable=False),
        sa.Column("expired", sa.BigInteger(), nullable=False),
        sa.Column("last_receipt_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("feed", "site", "epoch", name=op.f("pk_settled")),
    )
    op.create_table(
        "sites",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("contact", sa.Text(), nullable=False),
        sa.Column("place_text", sa.Text(), nullable=False),
        sa.Column("latitude", sa.Float(), nullable=True),
        sa.Column("longitude", sa.Float(), nullable=True),
        sa.Column("multicast_interface", sa.Text(), nullable=False),
        sa.Column("circuit_port", sa.Text(), nullable=True),
        sa.Column("first_vlan", sa.Integer(), nullable=True),
        sa.Column("last_vlan", sa.Integer(), nullable=True),
        sa.Column("access_rate_bps", sa.Float(), nullable=True),
        sa.Column("ceiling_mbps_by_hour", sa.JSON(), nullable=False),
        sa.Column("allow", sa.JSON(), nullable=False),
        sa.Column("multicast", sa.Boolean(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_sites")),
    )
    op.create_table(
        "sketches",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("minute", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("transport", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("sum_ms", sa.Float(), nullable=False),
        sa.Column("min_ms", sa.Float(), nullable=False),
        sa.Column("max_ms", sa.Float(), nullable=False),
        sa.Column("negative", sa.BigInteger(), nullable=False),
        sa.Column("bound_ms", sa.Float(), nullable=True),
        sa.Column("buckets", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("feed", "minute", "site", "transport", "kind", name=op.f("pk_sketches")),
    )
    op.create_index(op.f("ix_sketches_minute"), "sketches", ["minute"])
    op.create_table(
        "traffic_minutes",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("minute", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("products", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("peak_1s_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("feed", "minute", name=op.f("pk_traffic_minutes")),
    )
    op.create_table(
        "credentials",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("peer", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["site"], ["sites.name"], name=op.f("fk_credentials_site_sites"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_credentials")),
    )
    op.create_index(op.f("ix_credentials_site"), "credentials", ["site"])
    op.create_table(
        "pins",
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("transport", sa.String(length=32), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["feed"], ["feeds.name"], name=op.f("fk_pins_feed_feeds"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("feed", name=op.f("pk_pins")),
    )
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("feed", sa.String(length=64), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("not_pattern", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["feed"], ["feeds.name"], name=op.f("fk_subscriptions_feed_feeds"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["site"], ["sites.name"], name=op.f("fk_subscriptions_site_sites"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subscriptions")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_subscriptions_feed"), "subscriptions", ["feed"])
    op.create_index(op.f("ix_subscriptions_site"), "subscriptions", ["site"])
    op.create_table(
        "tokens",
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("credential_seconds", sa.BigInteger(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.Column("used_by", sa.String(length=64), nullable=True),
        sa.Column("used_peer", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["site"], ["sites.name"], name=op.f("fk_tokens_site_sites"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("secret_sha256", name=op.f("pk_tokens")),
    )
    op.create_index(op.f("ix_tokens_site"), "tokens", ["site"])


def downgrade() -> None:
    """Back."""
    for table in (
        "tokens",
        "subscriptions",
        "pins",
        "credentials",
        "traffic_minutes",
        "sketches",
        "sites",
        "settled",
        "plans",
        "legs",
        "leg_counters",
        "feeds",
        "faults",
        "exceptions",
        "batches",
    ):
        op.drop_table(table)
