"""Revisions of the schema from 0020 on."""
