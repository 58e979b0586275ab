"""Queries about measurements by other systems."""
