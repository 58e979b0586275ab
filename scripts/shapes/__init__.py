"""Readers of source code for scripts/shape.py: what a file holds, by language."""
