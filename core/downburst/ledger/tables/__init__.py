"""The ledger's tables, a module for each noun; whoever imports one has all of them."""

from downburst.ledger.tables import (
    access,
    alarms,
    base,
    circuits,
    feeds,
    latency,
    processes,
    receipts,
    senders,
    sites,
    upstreams,
)

__all__ = [
    "access",
    "alarms",
    "base",
    "circuits",
    "feeds",
    "latency",
    "processes",
    "receipts",
    "senders",
    "sites",
    "upstreams",
]
