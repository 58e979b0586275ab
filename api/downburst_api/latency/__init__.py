"""Latency and volume over time."""
