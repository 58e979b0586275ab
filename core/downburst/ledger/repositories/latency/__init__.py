"""Latencies in the ledger: minutes, and their roll-ups for a year."""
