"""Resends of stored products to a site."""
