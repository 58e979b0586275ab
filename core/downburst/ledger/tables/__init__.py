"""The ledger's tables, a module for each noun; importing one defines all of them."""

from downburst.ledger.tables import (
    access,
    alarms,
    base,
    circuits,
    feeds,
    latency,
    nsi,
    ordering,
    processes,
    receipts,
    relays,
    senders,
    sites,
    tcp_profiles,
    topology,
    upstreams,
)

__all__ = [
    "access",
    "alarms",
    "base",
    "circuits",
    "feeds",
    "latency",
    "nsi",
    "ordering",
    "processes",
    "receipts",
    "relays",
    "senders",
    "sites",
    "tcp_profiles",
    "topology",
    "upstreams",
]
