"""Ports and circuits."""
