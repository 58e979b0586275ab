"""Alarms: faults, with one notice at their beginning and one at their end for each subscribed receiver."""
