"""Alarms, silences, receivers, objectives."""
