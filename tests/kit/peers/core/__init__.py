"""Modules that run inside the providers' programs."""
