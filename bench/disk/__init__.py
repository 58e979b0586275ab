"""Bytes, processor time and memory that the product takes on a real disk."""
