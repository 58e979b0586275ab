"""Addresses given by others: their syntax, and whether they are on the public network."""
