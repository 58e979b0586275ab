"""The ledger: the truth of the configuration, and the history that can't be computed again.

`Ledger` holds the database and hands out one `Book` per transaction; a book groups every query by noun:
feeds, sites, tokens, credentials, subscriptions, ports, circuits, plans, pins,
users, access tokens, sessions, links, audit,
legs, latency, settled, exceptions, batches, faults, traffic.
"""

from downburst.ledger.book import Book
from downburst.ledger.engine import Ledger, migrate_ledger, standing_of

__all__ = ["Book", "Ledger", "migrate_ledger", "standing_of"]
