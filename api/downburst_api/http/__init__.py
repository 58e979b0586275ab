"""Shared parts of all routes: parameters, pages of lists, entity tags, tables, the description."""
