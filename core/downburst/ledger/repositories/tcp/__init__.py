"""Queries about the tuning of TCP."""
