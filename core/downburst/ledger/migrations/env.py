"""Runs the chain on the connection that the ledger hands over; there is no alembic.ini and no second way in."""

from alembic import context

from downburst.ledger.tables.base import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
