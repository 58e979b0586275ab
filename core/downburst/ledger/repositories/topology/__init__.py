"""The topology."""
