"""Requests of sites for access, and operators' answers."""
