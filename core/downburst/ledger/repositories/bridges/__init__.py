"""Queries about bridges to other systems of notifications."""
