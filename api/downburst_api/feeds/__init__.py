"""Feeds and pins."""
