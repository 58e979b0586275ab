"""Shapes of bridges to other systems of notifications."""
