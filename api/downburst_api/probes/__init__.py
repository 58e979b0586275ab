"""Probes of the paths to sites."""
