"""Measurements by other systems: their test points, the receiver of results, and the results."""
