"""The hub's health."""
