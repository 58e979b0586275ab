"""The lines between agent and node."""
