"""Relays: machines on the way to sites."""
