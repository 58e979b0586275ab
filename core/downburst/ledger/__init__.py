"""The ledger: the truth of the configuration, and the history that can't be computed again.

`Ledger` holds the database and hands out transactions; each groups every query by noun:
feeds, sites, tokens, credentials, subscriptions, ports, circuits, plans, pins,
users, access tokens, sessions, links, audit,
legs, latency, settled, exceptions, batches, faults, traffic.
"""

from downburst.ledger.engine import Ledger, migrate_ledger, standing_of
from downburst.ledger.transaction import Transaction

__all__ = ["Ledger", "Transaction", "migrate_ledger", "standing_of"]
