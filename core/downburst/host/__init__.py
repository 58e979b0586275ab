"""The hub's interfaces to its machine."""
