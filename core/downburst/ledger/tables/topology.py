"""Table of the topology."""

from sqlalchemy import JSON, Column, String, Table

from downburst.ledger.tables.base import metadata

topology_elements = Table(
    "topology_elements",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("name", String(63), primary_key=True),
    Column("properties", JSON, nullable=False),
)
