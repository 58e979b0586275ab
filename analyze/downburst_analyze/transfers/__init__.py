"""Transfers of one's own hub: their conditions, their minutes, and an export without addresses."""
