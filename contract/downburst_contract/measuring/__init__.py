"""Shapes of measurements by other systems."""
