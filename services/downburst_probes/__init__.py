"""Probes of paths: when they run, what they may take, when they end, and what they found."""
