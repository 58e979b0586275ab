"""Queries about probes."""
