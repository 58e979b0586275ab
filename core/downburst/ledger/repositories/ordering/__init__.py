"""Queries about circuits on demand: offers, providers, orders, and reservations at providers."""
