"""Sweeps say whether they are conclusive; the stored ones by their results."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward."""
    op.add_column("probes", sa.Column("conclusive", sa.Boolean, nullable=False, server_default=sa.false()))
    probes = sa.table(
        "probes",
        sa.column("id", sa.BigInteger),
        sa.column("kind", sa.String),
        sa.column("result", sa.JSON),
        sa.column("conclusive", sa.Boolean),
    )
    link = op.get_bind()
    sweeps = link.execute(sa.select(probes.c.id, probes.c.result).where(probes.c.kind == "knee")).all()
    for number, result in sweeps:
        if result and _shows_limit(result):
            link.execute(sa.update(probes).where(probes.c.id == number).values(conclusive=True))


def _shows_limit(result: dict[str, Any]) -> bool:
    if result["knee_bps"] is None:
        return any(step["sent"] and step["lost"] > 0.001 * step["sent"] for step in result["steps"])
    return result["knee_reason"] is None
