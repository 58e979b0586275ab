"""The ledger: the authority on the configuration, and the history that can't be recomputed.

`Ledger` holds the database and opens transactions; each groups its queries by noun:
feeds, sites, tokens, credentials, subscriptions, ports, circuits, plans, pins,
users, access tokens, sessions, links, audit,
legs, latency, settled, exceptions, batches, faults, traffic.
"""

from downburst.ledger.engine import Ledger, migrate_ledger, standing_of
from downburst.ledger.transaction import Transaction

__all__ = ["Ledger", "Transaction", "migrate_ledger", "standing_of"]
