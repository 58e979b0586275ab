"""Configurations of other WIS2 programs, converted to sources and publishers; pure."""
