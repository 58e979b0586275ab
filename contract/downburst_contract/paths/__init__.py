"""Shapes of measurements of the paths to sites."""
