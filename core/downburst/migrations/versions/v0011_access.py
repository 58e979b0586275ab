"""Users, tokens, sessions and one-time links; who changed what."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Forward."""
    _users()
    _access_tokens()
    _of_users("login_sessions", sa.Column("created_at", sa.BigInteger(), nullable=False))
    _of_users(
        "login_links",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
    )
    _audit()


def downgrade() -> None:
    """Back."""
    for table in ("audit", "login_links", "login_sessions", "access_tokens", "users"):
        op.drop_table(table)


def _users() -> None:
    op.create_table(
        "users",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        _key("users", "site", "sites"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_users")),
    )
    op.create_index(op.f("ix_users_site"), "users", ["site"])


def _access_tokens() -> None:
    op.create_table(
        "access_tokens",
        sa.Column("number", _Id, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        _key("access_tokens", "site", "sites"),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_access_tokens")),
        sa.UniqueConstraint("sha256", name=op.f("uq_access_tokens_sha256")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_access_tokens_site"), "access_tokens", ["site"])


def _of_users(table: str, *columns: sa.Column[object]) -> None:
    op.create_table(
        table,
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=64), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        *columns,
        _key(table, "user", "users"),
        sa.PrimaryKeyConstraint("sha256", name=op.f(f"pk_{table}")),
    )
    op.create_index(op.f(f"ix_{table}_user"), table, ["user"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("number", _Id, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.String(length=80), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=True),
        sa.Column("peer", sa.Text(), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=True),
        sa.Column("after", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"])
    op.create_index(op.f("ix_audit_kind_subject"), "audit", ["kind", "subject"])


def _key(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{other}.name"], ondelete="CASCADE", name=op.f(f"fk_{table}_{column}_{other}")
    )
