"""Downburst's shared core: words, ledger, settings, the command line, and the wiring of a hub."""
