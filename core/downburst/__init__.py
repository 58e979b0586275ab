"""Downburst's shared core: ground, words of the domain, settings, ledger."""
