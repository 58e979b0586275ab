"""Latencies as mergeable sketches, and sheets of them by minute."""
