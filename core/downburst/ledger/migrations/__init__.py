"""The chain of schema changes, packaged so that an installed hub can migrate its own ledger."""
