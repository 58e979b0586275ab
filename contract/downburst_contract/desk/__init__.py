"""Shapes of the reservation desk."""
