"""Runs the chain on the ledger's connection; there is no alembic.ini and no other entry point."""

from alembic import context

from downburst.ledger.tables.base import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
