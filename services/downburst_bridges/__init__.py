"""Bridges between this hub and other systems of notifications: sources of products, and publishers of them."""
