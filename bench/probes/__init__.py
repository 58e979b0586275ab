"""Probes of paths, measured."""
