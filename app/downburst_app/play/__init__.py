"""Synthetic and recorded products, played to a hub."""
