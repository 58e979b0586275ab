"""Addresses that others gave: what they have to look like, and which of them lie on the public network."""
