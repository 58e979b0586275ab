"""Stored products to a site once more."""
