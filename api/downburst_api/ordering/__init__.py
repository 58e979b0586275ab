"""Circuits on demand."""
