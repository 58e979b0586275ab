"""Bridges to other systems of notifications."""
