"""Ports, circuits with their ends, events and measurements."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Forward."""
    op.create_table(
        "circuit_ports",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("rate_bps", sa.BigInteger(), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=True),
        sa.Column("interface", sa.Text(), nullable=False),
        sa.Column("underlay", sa.Text(), nullable=False),
        sa.Column("stp", sa.Text(), nullable=False),
        sa.Column("first_vlan", sa.Integer(), nullable=True),
        sa.Column("last_vlan", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_circuit_ports")),
    )
    _circuits()
    _ends()
    _events()
    _measurements()


def downgrade() -> None:
    """Back."""
    for table in ("circuit_measurements", "circuit_events", "circuit_ends", "circuits", "circuit_ports"):
        op.drop_table(table)


def _circuits() -> None:
    op.create_table(
        "circuits",
        sa.Column("number", _Id, autoincrement=True, nullable=False),
        sa.Column("request_id", sa.String(length=100), nullable=False),
        sa.Column("asked_sha256", sa.String(length=64), nullable=False),
        sa.Column("rate_out_bps", sa.BigInteger(), nullable=False),
        sa.Column("rate_in_bps", sa.BigInteger(), nullable=False),
        sa.Column("begin", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=True),
        sa.Column("driver", sa.String(length=16), nullable=False),
        sa.Column("replication", sa.String(length=16), nullable=False),
        sa.Column("group", sa.Text(), nullable=True),
        sa.Column("cap", sa.String(length=8), nullable=False),
        sa.Column("shaped_share", sa.Float(), nullable=False),
        sa.Column("burst_bytes", sa.Integer(), nullable=True),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("ticket", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_circuits")),
        sa.UniqueConstraint("request_id", name=op.f("uq_circuits_request_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_circuits_state"), "circuits", ["state"])


def _ends() -> None:
    op.create_table(
        "circuit_ends",
        sa.Column("circuit", _Id, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("port", sa.String(length=63), nullable=False),
        sa.Column("site", sa.String(length=63), nullable=True),
        sa.Column("first_vlan", sa.Integer(), nullable=True),
        sa.Column("last_vlan", sa.Integer(), nullable=True),
        sa.Column("vlan", sa.Integer(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        _of_circuit("circuit_ends"),
        sa.PrimaryKeyConstraint("circuit", "position", name=op.f("pk_circuit_ends")),
    )
    op.create_index(op.f("ix_circuit_ends_port"), "circuit_ends", ["port"])
    op.create_index(op.f("ix_circuit_ends_site"), "circuit_ends", ["site"])


def _events() -> None:
    op.create_table(
        "circuit_events",
        sa.Column("number", _Id, autoincrement=True, nullable=False),
        sa.Column("circuit", _Id, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("step", sa.String(length=16), nullable=False),
        sa.Column("hop", sa.Text(), nullable=False),
        sa.Column("remedy", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        _of_circuit("circuit_events"),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_circuit_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_circuit_events_circuit"), "circuit_events", ["circuit"])


def _measurements() -> None:
    op.create_table(
        "circuit_measurements",
        sa.Column("circuit", _Id, nullable=False),
        sa.Column("site", sa.String(length=63), nullable=False),
        sa.Column("direction", sa.String(length=8), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("rate_bps", sa.BigInteger(), nullable=False),
        sa.Column("reserved_bps", sa.BigInteger(), nullable=False),
        sa.Column("loss_share", sa.Float(), nullable=False),
        sa.Column("round_trip_us", sa.BigInteger(), nullable=True),
        sa.Column("cause", sa.String(length=32), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("remedy", sa.Text(), nullable=False),
        _of_circuit("circuit_measurements"),
        sa.PrimaryKeyConstraint("circuit", "site", "direction", name=op.f("pk_circuit_measurements")),
    )


def _of_circuit(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_circuit_circuits")
    return sa.ForeignKeyConstraint(["circuit"], ["circuits.number"], ondelete="CASCADE", name=name)
