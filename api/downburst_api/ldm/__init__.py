"""LDM: sources, permissions to push, connections."""
