"""The overview: faults, traffic, plans with reasons, sites' progress, latency."""
